//go:build unix

package cli

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"
)

// TestMain is the measuring command of TestSignals when it is told so.
func TestMain(m *testing.M) {
	if os.Getenv("CLI_TEST_SIGNALS") != "" {
		ctx, interim, stop := Signals(context.Background())
		defer stop()
		fmt.Println("ready")
		select {
		case <-interim:
			fmt.Println("interim")
		case <-time.After(time.Minute):
			os.Exit(3)
		}
		<-ctx.Done()
		fmt.Println("summary")
		select {} // a summary that hangs
	}
	os.Exit(m.Run())
}

func TestSignalsEndWithASummaryAndThenAtOnce(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "CLI_TEST_SIGNALS=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for _, step := range []struct {
			line string
			send syscall.Signal
		}{{"ready", syscall.SIGQUIT}, {"interim", sig}, {"summary", sig}} {
			if !lines.Scan() || lines.Text() != step.line {
				t.Fatalf("%v: got line %q, want %q", sig, lines.Text(), step.line)
			}
			if err := cmd.Process.Signal(step.send); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait() // the status says it
		if got, want := cmd.ProcessState.ExitCode(), 128+int(sig); got != want {
			t.Errorf("a second %v: got exit status %d, want %d", sig, got, want)
		}
	}
}

func TestSignalsStopGivesUpItsContext(t *testing.T) {
	ctx, _, stop := Signals(t.Context())
	if err := ctx.Err(); err != nil {
		t.Fatal(err)
	}
	stop()
	if ctx.Err() == nil {
		t.Error("the context is not done after stop")
	}
}
