package rdskit_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

func TestShellsTakeTheCompletionOfEachCommand(t *testing.T) {
	commands, err := filepath.Glob("cmd/*")
	if err != nil || len(commands) == 0 {
		t.Fatal(commands, err)
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "./cmd/...")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range commands {
		name := filepath.Base(c)
		for _, shell := range []string{"bash", "zsh", "fish"} {
			script, err := exec.Command(filepath.Join(dir, name), "--completion", shell).Output()
			if err != nil || !strings.Contains(string(script), "version") {
				t.Errorf("%s --completion %s: %v, no --version among\n%s", name, shell, err, script)
				continue
			}
			if _, err := exec.LookPath(shell); err != nil {
				continue // it is tried where the shell is
			}
			file := filepath.Join(dir, name+"."+shell)
			if err := os.WriteFile(file, script, 0o666); err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(shell, "-n", file).CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s takes the completion of %s for no script: %v\n%s", shell, name, err, out)
			}
		}
	}
}
