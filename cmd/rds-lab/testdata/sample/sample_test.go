package sample

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPositive(t *testing.T) {
	t.Log("a log line")
	if Sign(5) != 1 {
		t.Error("want 1")
	}
}

func TestFails(t *testing.T) {
	t.Run("not really", func(t *testing.T) { t.Skip("for a reason") })
	if os.Getenv("SAMPLE_FAIL") != "" {
		t.Errorf("it is to fail: %d", Sign(-1))
	}
}

func TestWritesAFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o600); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat("sample.go"); err != nil {
		t.Error(err)
	}
}

func TestHangs(t *testing.T) {
	if os.Getenv("SAMPLE_HANG") == "" {
		t.Skip("SAMPLE_HANG is not set")
	}
	// Not before it hangs: a signal right after the system call that prints would show the
	// runtime's stack alone.
	time.AfterFunc(100*time.Millisecond, func() { fmt.Println("hanging") })
	hang()
}

func TestRaces(t *testing.T) {
	if os.Getenv("SAMPLE_RACE") == "" {
		t.Skip("SAMPLE_RACE is not set")
	}
	n, done := 0, make(chan bool)
	go func() {
		n++
		close(done)
	}()
	n++
	<-done
}

func hang() { time.Sleep(time.Hour) }

func FuzzSign(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {
		if s := Sign(n); s*n < 0 {
			t.Errorf("the sign of %d is %d", n, s)
		}
	})
}

func BenchmarkSign(b *testing.B) {
	for b.Loop() {
		Sign(-3)
	}
}

func ExampleSign() {
	fmt.Println(Sign(-7))
	// Output: -1
}
