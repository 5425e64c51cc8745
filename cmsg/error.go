package cmsg

import (
	"errors"
	"fmt"
)

// What can be wrong with a control message; a [*ParseError] wraps one of them.
var (
	// ErrTruncated: the message is cut off by the end of the control buffer.
	// That is how the kernel leaves a message for which the buffer has too
	// little room (put_cmsg in net/core/scm.c); it then sets MSG_CTRUNC. If no
	// header fits it leaves nothing at all, and only MSG_CTRUNC tells.
	ErrTruncated = errors.New("truncated")
	// ErrMalformed: a length or value that no kernel writes.
	ErrMalformed = errors.New("malformed")
	// ErrWrongKind: the method called does not decode this kind of message.
	ErrWrongKind = errors.New("wrong kind")
	// ErrRefused: the kernel would refuse the message, see [Check].
	ErrRefused = errors.New("not accepted by the kernel")
)

// ParseError says which message of a control buffer is wrong, and what is
// wrong with it.
type ParseError struct {
	Offset int   // of the message's header in the control buffer, in bytes
	Level  int   // 0 if the header is cut off
	Type   int   // 0 if the header is cut off
	Kind   Kind  // of Level and Type in the dialect
	Err    error // wraps one of the errors of this package
}

// Error returns a text such as "cmsg: offset 24, level 276, type 4 (RDMA
// status): truncated: 8 bytes of data, 12 are needed".
func (e *ParseError) Error() string {
	if e.Level == 0 && e.Type == 0 {
		return fmt.Sprintf("cmsg: offset %d: %v", e.Offset, e.Err)
	}
	return fmt.Sprintf("cmsg: offset %d, level %d, type %d (%v): %v", e.Offset, e.Level, e.Type, e.Kind, e.Err)
}

// Unwrap returns e.Err.
func (e *ParseError) Unwrap() error { return e.Err }

// unsupported says that a dialect does not have what is to be appended.
func unsupported(d Dialect, what string) error {
	return fmt.Errorf("cmsg: %s kernels have no %s: %w", d, what, errors.ErrUnsupported)
}
