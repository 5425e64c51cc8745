package target

import (
	"errors"
	"fmt"
	"net"
	"syscall"

	"github.com/rdskit/rdskit/internal/strerror"
)

// An Error says why something cannot be reached.
type Error struct {
	// What failed, in the words of the C tools, which scripts look for.
	What string
	// Errno is the error of the system call, or that it would have; 0 for none.
	Errno syscall.Errno
	// Err is the cause, and the way out.
	Err error
}

// newError is an Error with the errno of err.
func newError(what string, err error) *Error {
	e := &Error{What: what, Err: err}
	errors.As(err, &e.Errno)
	if op, ok := err.(*net.OpError); ok {
		e.Err = op.Err // the target is known
	}
	return e
}

func (e *Error) Error() string {
	if e.Errno == 0 {
		return fmt.Sprintf("%s: %v", e.What, e.Err)
	}
	return fmt.Sprintf("%s, errno: %d (%s): %v", e.What, int(e.Errno), strerror.Text(e.Errno), e.Err)
}

// Unwrap returns Err and Errno.
func (e *Error) Unwrap() []error {
	if e.Errno == 0 {
		return []error{e.Err}
	}
	return []error{e.Err, e.Errno}
}
