package cli

import (
	"os"
	"syscall"
	"testing"
	"time"

	"golang.org/x/term"

	"github.com/rdskit/rdskit/internal/lab/pty"
)

func state(t *testing.T, f *os.File) term.State {
	t.Helper()
	s, err := term.GetState(int(f.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	return *s
}

// received waits for a value of the channel.
func received[T any](t *testing.T, what string, c <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-c:
	case <-time.After(10 * time.Second):
		t.Fatalf("no %s", what)
	}
	return v
}

func TestAScreenTakesTheKeysOfItsTerminal(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	defer slave.Close()
	defer master.Close() // ends the Screen's reading
	before := state(t, slave)
	s := OpenScreen(t.Context(), slave, slave)
	defer s.Close()
	if state(t, slave) == before {
		t.Error("the terminal keeps characters until the end of a line")
	}
	typeIn := func(keys string) {
		t.Helper()
		if _, err := master.WriteString(keys); err != nil {
			t.Fatal(err)
		}
	}
	typeIn("ab")
	for _, want := range []byte("ab") {
		if key := received(t, "key", s.Keys()); key != want {
			t.Errorf("key %q, want %q", key, want)
		}
	}
	typeIn("\x1b[A") // an arrow
	for key := byte(0); key == 0; {
		typeIn("c") // may be taken for part of the arrow's
		select {
		case key = <-s.Keys():
			if key != 'c' {
				t.Errorf("key %q of the arrow's", key)
			}
		case <-time.After(50 * time.Millisecond):
		}
	}
	for _, sig := range []syscall.Signal{syscall.SIGWINCH, syscall.SIGCONT} {
		if err := syscall.Kill(os.Getpid(), sig); err != nil {
			t.Fatal(err)
		}
		received(t, "call to show it again, after "+sig.String(), s.Redraw())
	}
	s.Close()
	if state(t, slave) != before {
		t.Error("the terminal is not as it was")
	}
}

func TestAScreenWithoutAKeyboardLeavesItAlone(t *testing.T) {
	master, slave, err := pty.Open()
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	defer slave.Close()
	defer master.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	before := state(t, slave)
	s := OpenScreen(t.Context(), null, slave)
	defer s.Close()
	if state(t, slave) != before {
		t.Error("the terminal is not as it was")
	}
}
