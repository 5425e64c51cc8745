package rdma

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/rdskit/rdskit/cmsg"
)

// What no test makes the kernel say.
func TestErrorsOfTheKernelAreExplained(t *testing.T) {
	for _, test := range []struct {
		explain func(error) error
		errno   syscall.Errno
		kind    error
		text    string
	}{
		{explainRegister, syscall.EPERM, ErrNoLockedMemory, "RLIMIT_MEMLOCK"},
		{explainRegister, syscall.EBUSY, ErrBusy, "try again"},
		{explainRegister, syscall.EMSGSIZE, ErrTooLarge, "1 MiB"},
		{explainRegister, syscall.EFAULT, nil, "long-term"},
		{explainRegister, syscall.ENOMEM, nil, "FlushRegions"},
		{explainRegister, syscall.ENODEV, nil, "device"},
		{explainRegister, syscall.EINVAL, nil, "no such registration"},
		{explainOperation, syscall.EMSGSIZE, ErrTooLarge, "1 MiB"},
		{explainOperation, syscall.EFAULT, nil, "local pages"},
		{explainOperation, syscall.ENOMEM, nil, "memory"},
	} {
		err := test.explain(os.NewSyscallError("sendmsg", test.errno))
		if !errors.Is(err, test.errno) || test.kind != nil && !errors.Is(err, test.kind) || !strings.Contains(err.Error(), test.text) {
			t.Errorf("%v becomes %v", test.errno, err)
		}
	}
	timeout := &net.OpError{Op: "rdma-offer", Err: &hintError{err: os.ErrDeadlineExceeded, hint: "not connected"}}
	if !timeout.Timeout() {
		t.Error("a deadline is no timeout")
	}
}

func TestEachStatusIsAnErrorOfItsOwn(t *testing.T) {
	if err := statusError(cmsg.StatusSuccess); err != nil {
		t.Errorf("success is %v", err)
	}
	kinds := []error{ErrRemoteAccess, ErrCanceled, ErrDropped, ErrFailed}
	for i, kind := range kinds {
		for j, other := range kinds {
			if err := statusError(cmsg.Status(i + 1)); errors.Is(err, other) != (i == j) {
				t.Errorf("status %d is %v, which is to be %v", i+1, err, kind)
			}
		}
	}
	for _, s := range []cmsg.Status{5, -1} {
		var status *StatusError
		if err := statusError(s); !errors.As(err, &status) || status.Status != s || !strings.Contains(err.Error(), s.String()) {
			t.Errorf("status %d is %v", s, err)
		}
	}
}
