//go:build unix

package cli

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// written calls f with a file to write to, and returns what was written.
func written(t *testing.T, f func(*os.File)) string {
	t.Helper()
	file, err := os.Create(t.TempDir() + "/terminal")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	f(file)
	b, err := os.ReadFile(file.Name())
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestAScreenLeavesTheTerminalAsItWas(t *testing.T) {
	const shown = home + "one" + clearLine + "\r\ntwo" + clearLine + clearBelow
	for _, tt := range []struct {
		name string
		use  func(*testing.T, *os.File)
		want string
	}{
		{"when it is closed, even twice", func(t *testing.T, f *os.File) {
			s := OpenScreen(t.Context(), f, f)
			if err := s.Show([]string{"one", "two"}); err != nil {
				t.Error(err)
			}
			s.Close()
			s.Close()
		}, enterScreen + shown + leaveScreen},
		{"when its context is done, and shows nothing then", func(t *testing.T, f *os.File) {
			ctx, cancel := context.WithCancel(t.Context())
			s := OpenScreen(ctx, f, f)
			cancel()
			s.ended.Wait()
			if err := s.Show([]string{"late"}); err != nil {
				t.Error(err)
			}
			s.Close()
		}, enterScreen + leaveScreen},
		{"and does not take it twice when the process continues", func(t *testing.T, f *os.File) {
			s := OpenScreen(t.Context(), f, f)
			if err := syscall.Kill(os.Getpid(), syscall.SIGCONT); err != nil {
				t.Fatal(err)
			}
			for deadline := time.Now().Add(5 * time.Second); len(s.signals) > 0 && time.Now().Before(deadline); {
				time.Sleep(time.Millisecond)
			}
			s.Close()
		}, enterScreen + leaveScreen},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := written(t, func(f *os.File) { tt.use(t, f) })
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAScreenThatIsNoTerminalHasAnOrdinarySize(t *testing.T) {
	written(t, func(f *os.File) {
		s := OpenScreen(t.Context(), f, f)
		defer s.Close()
		if w, h := s.Size(); w != 80 || h != 24 {
			t.Errorf("%d by %d", w, h)
		}
	})
}

func TestAScreenThatCannotBeWrittenToIsAnError(t *testing.T) {
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := OpenScreen(t.Context(), f, f)
	defer s.Close()
	if err := s.Show([]string{strings.Repeat("x", 10)}); !isWriteError(err) {
		t.Errorf("error %v", err)
	}
}
