package rdma

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/rdssock"
)

// Errors of a Conn and of its operations are *net.OpError; those of memory alone
// begin with "rdma: ". They answer errors.Is to one of these where one fits, and to
// the errno of a system call that failed.
var (
	// ErrNoRDMA says that the socket's transport has no RDMA. It also answers to
	// rdssock.ErrNotSupported and errors.ErrUnsupported.
	ErrNoRDMA = fmt.Errorf("no RDMA: %w", rdssock.ErrNotSupported)

	// ErrNoLockedMemory says that the process may lock no memory: its
	// RLIMIT_MEMLOCK is 0 and it lacks CAP_IPC_LOCK (EPERM).
	ErrNoLockedMemory = errors.New("no memory may be locked")

	// ErrBusy says that the device could not map the memory, or the region that the
	// kernel meant to use again was not ready (EBUSY). Trying again may work.
	ErrBusy = errors.New("the device is busy")

	// ErrTooLarge says that more was asked for than the kernel does at once: 1 MiB
	// for an operation or a key, 1024 local slices (EMSGSIZE).
	ErrTooLarge = errors.New("too large")

	// ErrInUse says that an operation under way uses the region, or that an
	// Operation or Registration is under way already.
	ErrInUse = errors.New("in use")

	// ErrNotStarted says that there is no operation to wait for.
	ErrNotStarted = errors.New("the operation was not started")

	// ErrNotMapped says that memory is not a shared mapping: Go heap, a stack, or
	// private memory of another kind, or what a file had before it became shorter.
	ErrNotMapped = errors.New("not a shared mapping")

	// ErrRange says that a Slice or an offset is outside of the memory.
	ErrRange = errors.New("out of range")

	// ErrNoContext says that the context is nil.
	ErrNoContext = errors.New("the context is nil")

	// ErrRegionClosed says that the Region was closed. It also answers to net.ErrClosed.
	ErrRegionClosed = fmt.Errorf("region closed: %w", net.ErrClosed)

	// ErrNotRegistered says that a Registration has no key, or was revoked.
	ErrNotRegistered = errors.New("not registered")

	// ErrAtomics says that the device is not known to do what the kernel would ask
	// of it for an atomic operation.
	ErrAtomics = fmt.Errorf("atomic operations: %w", rdssock.ErrNotSupported)
)

// How the kernel says that an operation failed. The errors are *StatusError.
var (
	// ErrRemoteAccess says that the peer's device refused: the key is unknown or
	// revoked, or the operation went beyond the region's pages. The connection was
	// broken by it. An operation of more than 8 pages ends with ErrDropped instead
	// (net/rds/ib_send.c:rds_ib_xmit_rdma).
	ErrRemoteAccess = errors.New("remote access error")

	// ErrCanceled says that Cancel or Close came first. The operation may have
	// happened all the same.
	ErrCanceled = errors.New("canceled")

	// ErrDropped says that the connection broke before the operation was begun or
	// finished. It is not repeated, and what became of it is unknown.
	ErrDropped = errors.New("dropped, the connection broke")

	// ErrFailed says that the device reported another error, such as that the peer
	// no longer answers or that its own queue was flushed when the connection
	// broke.
	ErrFailed = errors.New("failed")
)

// A StatusError is the status with which the kernel ended an operation.
type StatusError struct {
	Status cmsg.Status
}

func (e *StatusError) Error() string {
	if kind := e.Unwrap(); kind != nil {
		return kind.Error()
	}
	return e.Status.String()
}

// Unwrap returns the sentinel for the status.
func (e *StatusError) Unwrap() error {
	switch e.Status {
	case cmsg.StatusRemoteError:
		return ErrRemoteAccess
	case cmsg.StatusCanceled:
		return ErrCanceled
	case cmsg.StatusDropped:
		return ErrDropped
	case cmsg.StatusOtherError:
		return ErrFailed
	}
	return nil
}

// statusErrors are made once, so that a completion allocates nothing.
var statusErrors = func() (errs [5]error) {
	for s := range errs {
		errs[s] = &StatusError{cmsg.Status(s)}
	}
	return errs
}()

func statusError(s cmsg.Status) error {
	switch {
	case s == cmsg.StatusSuccess:
		return nil
	case s > 0 && int(s) < len(statusErrors):
		return statusErrors[s]
	}
	return &StatusError{s}
}

// A hintError is a failure with what it means and what to do about it.
type hintError struct {
	err  error
	kind error // one of the Err variables, or nil
	hint string
}

func (e *hintError) Error() string { return e.err.Error() + ": " + e.hint }

func (e *hintError) Unwrap() []error {
	if e.kind == nil {
		return []error{e.err}
	}
	return []error{e.err, e.kind}
}

// Timeout makes net.OpError report what the cause reports.
func (e *hintError) Timeout() bool {
	var t interface{ Timeout() bool }
	return errors.As(e.err, &t) && t.Timeout()
}

// refuse is an error for what is not even tried.
func refuse(kind error, format string, args ...any) error {
	return &hintError{err: kind, hint: fmt.Sprintf(format, args...)}
}

// alive says why nothing is to be begun: there is no context, or it has ended.
func alive(ctx context.Context) error {
	if ctx == nil {
		return ErrNoContext
	}
	return ctx.Err()
}

// prefix is for the errors that are no Conn's.
func prefix(err error) error { return fmt.Errorf("rdma: %w", err) }

// opError puts err into the shape of package net. An error of the socket gives its
// cause.
func (c *Conn) opError(op string, peer netip.AddrPort, err error) error {
	var sock *net.OpError
	if errors.As(err, &sock) {
		err = sock.Err
	}
	e := &net.OpError{Op: op, Net: "rds", Source: c.sock.LocalAddr(), Err: err}
	if peer.IsValid() {
		e.Addr = rdssock.Addr{AddrPort: peer}
	}
	return e
}

// explainRegister says what the registration of memory failed for
// (net/rds/rdma.c:__rds_rdma_map and net/rds/ib_frmr.c).
func explainRegister(err error) error {
	hint := func(kind error, hint string) error { return &hintError{err: err, kind: kind, hint: hint} }
	switch {
	case errors.Is(err, syscall.EPERM):
		return hint(ErrNoLockedMemory, "RLIMIT_MEMLOCK is 0: raise it (ulimit -l), or give CAP_IPC_LOCK")
	case errors.Is(err, syscall.EBUSY):
		return hint(ErrBusy, "the device could not map the memory, or the region to use again was not free: try again")
	case errors.Is(err, syscall.EMSGSIZE):
		return hint(ErrTooLarge, "a key covers at most 1 MiB")
	case errors.Is(err, syscall.EFAULT):
		return hint(nil, "the pages cannot be held for the device: the mapping ends, or is of a file system that permits no long-term pins")
	case errors.Is(err, syscall.ENOMEM):
		return hint(nil, "the device or the kernel has no room for another region: revoke some, or call FlushRegions")
	case errors.Is(err, syscall.ENODEV):
		return hint(nil, "the local address has no RDMA device yet")
	case errors.Is(err, syscall.EINVAL):
		return hint(nil, "the kernel takes no such registration")
	}
	return err
}

// explainOperation says what starting an operation failed for
// (net/rds/rdma.c:rds_cmsg_rdma_args).
func explainOperation(err error) error {
	hint := func(kind error, hint string) error { return &hintError{err: err, kind: kind, hint: hint} }
	switch {
	case errors.Is(err, syscall.EMSGSIZE) && !errors.Is(err, rdssock.ErrMessageTooLong):
		return hint(ErrTooLarge, "an operation moves at most 1 MiB")
	case errors.Is(err, syscall.EFAULT):
		return hint(nil, "the local pages cannot be held for the device")
	case errors.Is(err, syscall.ENOMEM):
		return hint(nil, "the kernel has no memory for the operation")
	}
	return err
}
