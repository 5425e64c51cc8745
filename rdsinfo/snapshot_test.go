package rdsinfo

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/abi"
)

func TestATableThatTheKernelLacksDoesNotSpoilTheOthers(t *testing.T) {
	s := readCapture(t, "uml-6.1.176-tcp") // without rds_rdma
	_, err := s.IBConnections()
	var te *TableError
	if !errors.As(err, &te) || te.Table != IBConnections || !errors.Is(err, ErrNoTable) || !errors.Is(err, syscall.ENOPROTOOPT) {
		t.Errorf("IBConnections: %v", err)
	}
	if want := "table of InfiniBand connections: the kernel has no such table: it comes with the module rds_rdma"; err.Error() != want {
		t.Errorf("IBConnections: %q, want %q", err, want)
	}
	if rows, err := s.Connections(); err != nil || len(rows) != 7 {
		t.Errorf("Connections: %d rows, %v", len(rows), err)
	}
}

func TestAKernelWithoutRDS6ShowsItsIPv4Tables(t *testing.T) {
	s := readCapture(t, "uml-6.1.176-tcp")
	for option := abi.RDS6_INFO_CONNECTIONS; option <= abi.RDS6_INFO_IB_CONNECTIONS; option++ {
		s.raw[option] = rawTable{err: os.NewSyscallError("getsockopt", syscall.ENOPROTOOPT)}
	}
	for table, want := range map[Table]int{Connections: 4, Sockets: 4, SendQueue: 1, ReceiveQueue: 3, TCPSockets: 17} {
		if rows, err := tableRows(s, table); err != nil || lenOf(rows) != want {
			t.Errorf("%s: %d rows, %v; want %d", table, lenOf(rows), err, want)
		}
	}
}

func TestATableThatWasNotReadIsAnError(t *testing.T) {
	s := &Snapshot{}
	for _, table := range AllTables() {
		var te *TableError
		if rows, err := tableRows(s, table); !errors.As(err, &te) || errors.Is(err, ErrNoTable) {
			t.Errorf("%s: %v, %v", table, rows, err)
		}
	}
	if _, err := s.Queue(Connections); err == nil {
		t.Error("connections were decoded as a queue")
	}
}

func TestMergeKeepsTheKernelsOrderAndEachObjectOnce(t *testing.T) {
	is4 := func(s string) bool { return s[0] == '4' }
	for _, tt := range []struct {
		name         string
		v4, v6, want []string
	}{
		{"the same objects", []string{"4a.", "4b."}, []string{"6x", "4a", "6y", "4b"}, []string{"6x", "4a.", "6y", "4b."}},
		{"one came in between", []string{"4a."}, []string{"6x", "4a", "4b"}, []string{"4a.", "6x"}},
		{"one went in between", []string{"4a.", "4b."}, []string{"4a", "6x"}, []string{"4a.", "4b.", "6x"}},
		{"IPv4 only", []string{"4a."}, []string{"4a"}, []string{"4a."}},
		{"IPv6 only", nil, []string{"6x"}, []string{"6x"}},
		{"nothing", nil, nil, []string{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, merge(tt.v4, tt.v6, is4)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestConnectionsHaveTheStateThatTheKernelReports(t *testing.T) {
	for _, tt := range []struct {
		flags ConnectionFlags
		text  string
		state string
	}{
		{0, "----", "down"},
		{Sending, "s---", "down"},
		{Connecting, "-c--", "connecting"},
		{Connected, "--C-", "up"},
		{Sending | Connected, "s-C-", "up"},
		{Failed, "---E", "error"},
		{0xf0, "----", "down"},
	} {
		if got := tt.flags.String(); got != tt.text {
			t.Errorf("flags %#x: %q, want %q", uint8(tt.flags), got, tt.text)
		}
		if got := (Connection{Flags: tt.flags}).State().String(); got != tt.state {
			t.Errorf("flags %#x: %s, want %s", uint8(tt.flags), got, tt.state)
		}
	}
}
