package pty

import (
	"errors"
	"os"
	"testing"
	"time"

	"golang.org/x/term"
)

func TestATerminalHasASizeAndTakesWhatIsTyped(t *testing.T) {
	master, slave, err := Open()
	if err != nil {
		t.Skipf("this machine has no pseudo-terminals: %v", err)
	}
	defer master.Close()
	defer slave.Close()
	if err := Resize(master, 30, 100); err != nil {
		t.Fatal(err)
	}
	if columns, rows, err := term.GetSize(int(slave.Fd())); columns != 100 || rows != 30 || err != nil {
		t.Errorf("it has %d columns and %d rows, %v", columns, rows, err)
	}
	if _, err := master.WriteString("typed\n"); err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 20)
	if n, err := slave.Read(buf); string(buf[:n]) != "typed\n" || err != nil {
		t.Errorf("read %q, %v", buf[:n], err)
	}
	if n, err := master.Read(buf); string(buf[:n]) != "typed\r\n" || err != nil {
		t.Errorf("the echo is %q, %v", buf[:n], err)
	}
	master.SetReadDeadline(time.Now())
	if _, err := master.Read(buf); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v, want that of the deadline", err)
	}
}
