package abi

import (
	"fmt"
	"testing"
)

func TestNames(t *testing.T) {
	var zero Dialect
	tests := []struct {
		v    fmt.Stringer
		want string
	}{
		{zero, "mainline"},
		{UEK, "UEK"},
		{Dialect(9), "dialect 9"},
		{RDS_TRANS_IB, "infiniband"},
		{RDS_TRANS_IWARP, "iwarp"},
		{RDS_TRANS_TCP, "tcp"},
		{RDS_TRANS_LOOP, "loopback"},
		{RDS_TRANS_NONE, "none"},
		{Transport(17), "transport 17"},
	}
	for _, tt := range tests {
		if got := tt.v.String(); got != tt.want {
			t.Errorf("%T(%d) is %q, want %q", tt.v, tt.v, got, tt.want)
		}
	}
}

func TestTransportOptionOfTheDialect(t *testing.T) {
	if m, u := Mainline.TransportOption(), UEK.TransportOption(); m != 8 || u != 9 {
		t.Errorf("mainline %d, UEK %d; want 8, 9", m, u)
	}
}

func TestCongBitIsThePortModulo64(t *testing.T) {
	for port, want := range map[uint16]uint{0: 0, 63: 63, 64: 0, 6032: 16, 6063: 47, 65535: 63} {
		if got := CongBit(port); got != want {
			t.Errorf("port %d: bit %d, want %d", port, got, want)
		}
	}
}
