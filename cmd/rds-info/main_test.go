package main

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
)

// envCommand makes the test binary be rds-info itself.
const envCommand = "RDS_INFO_TEST_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(envCommand) != "" {
		main()
	}
	labtest.Main(m)
}

// A result is what a run of the command left behind.
type result struct {
	stdout, stderr string
	status         int // -1 if a signal ended it
}

// commandTimeout ends a run that hangs.
const commandTimeout = 60 * time.Second

// runOn runs rds-info on the lab's n-th host; 0 is where the test runs.
func runOn(t *testing.T, n int, args ...string) result {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), commandTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = append(os.Environ(), envCommand+"=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if n == 0 {
		err = cmd.Start()
	} else {
		err = labtest.Host(t, n).Start(cmd)
	}
	if err != nil {
		t.Fatal(err)
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("%q: %v; stdout %q, stderr %q", args, errors.Join(err, ctx.Err()), &stdout, &stderr)
	}
	return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
}
