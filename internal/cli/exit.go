package cli

import (
	"errors"
	"fmt"
	"syscall"
)

// The exit statuses of the rdskit tools.
const (
	OK        = 0 // as asked
	Failed    = 1 // the thing tested failed: no reply, a message lost or damaged
	CannotTry = 2 // it could not be tried: usage, no module, no address, no permission
)

// An ExitError ends the program with a status of its own. Without Err it does so in
// silence.
type ExitError struct {
	Status int
	Err    error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Status)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *ExitError) Unwrap() error { return e.Err }

// A UsageError says what is wrong with a command line. [Run] prints it with a
// pointer to the help and ends with [CannotTry].
type UsageError struct {
	Option string // as the user spelled it; empty when no option is to blame
	Value  string // what was given for it
	Reason string // what is wrong, and what would be right
	valued bool   // Value counts though it is empty
}

func (e *UsageError) Error() string {
	switch {
	case e.Option == "":
		return e.Reason
	case e.Value != "" || e.valued:
		return fmt.Sprintf("%s %q: %s", e.Option, e.Value, e.Reason)
	}
	return e.Option + " " + e.Reason
}

// isClosedPipe reports whether nobody reads what was written: nothing more is to be said.
func isClosedPipe(err error) bool { return errors.Is(err, syscall.EPIPE) }
