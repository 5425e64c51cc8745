package route

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"testing"

	"github.com/mdlayher/netlink"
)

func TestRefusedTellsNoNetlinkFromNoRoute(t *testing.T) {
	sys := os.NewSyscallError
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"seccomp refuses the socket", sys("socket", syscall.EPERM), true},
		{"a service without AF_NETLINK", sys("socket", syscall.EAFNOSUPPORT), true},
		{"a policy refuses the request", &netlink.OpError{Op: "send", Err: sys("sendmsg", syscall.EACCES)}, true},
		{"a prohibit route", &netlink.OpError{Op: "receive", Err: syscall.EACCES}, false},
		{"no right to enter the namespace", sys("setns", syscall.EPERM), false},
		{"no descriptors left", sys("socket", syscall.EMFILE), false},
		{"a wrapped refusal", fmt.Errorf("listing: %w", sys("bind", syscall.EPERM)), true},
		{"another error", errors.New("other"), false},
	}
	for _, tt := range tests {
		if got := refused(tt.err); got != tt.want {
			t.Errorf("%s (%v): refused = %v", tt.name, tt.err, got)
		}
	}
}
