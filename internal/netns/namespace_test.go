package netns

import (
	"os"
	"path/filepath"
	"testing"
)

func TestAProcWithoutProcess1HidesSome(t *testing.T) {
	proc := t.TempDir()
	if !Hides(proc) {
		t.Error("an empty one does not")
	}
	if err := os.Mkdir(filepath.Join(proc, "1"), 0o777); err != nil {
		t.Fatal(err)
	}
	if Hides(proc) {
		t.Error("one with process 1 does")
	}
}
