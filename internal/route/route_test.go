package route

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"testing"
)

func TestLookupRefusesAQuestionThatHasNoAnswer(t *testing.T) {
	addr := netip.MustParseAddr
	tests := []struct {
		name string
		dst  netip.Addr
		cfg  *Config
		says string
	}{
		{name: "no destination", says: "no destination"},
		{name: "unspecified destination", dst: addr("0.0.0.0"), says: "0.0.0.0: the unspecified address"},
		{name: "unspecified destination, IPv4-mapped", dst: addr("::ffff:0.0.0.0"), says: "the unspecified address"},
		{name: "mixed families", dst: addr("10.0.0.1"), cfg: &Config{Source: addr("fd00::1")}, says: "fd00::1 is of the other address family"},
		{name: "link-local without a zone", dst: addr("fe80::1"), says: "write fe80::1%eth0"},
		{name: "zone and device", dst: addr("fe80::1%eth1"), cfg: &Config{Device: "eth0"}, says: "zone eth1 and device eth0 differ"},
		{name: "zones of destination and source", dst: addr("fe80::1%eth1"), cfg: &Config{Source: addr("fe80::2%eth2")}, says: "differ"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Lookup(t.Context(), tt.dst, tt.cfg)
			if err == nil {
				t.Fatalf("got %+v", got)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q does not say %q", err, tt.says)
			}
		})
	}
}

func TestCancelledContextEndsTheLookup(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Lookup(ctx, netip.MustParseAddr("127.0.0.1"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Lookup: %v", err)
	}
	if _, err := Addresses(ctx, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("Addresses: %v", err)
	}
	if _, err := IsLocal(ctx, netip.MustParseAddr("127.0.0.1"), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("IsLocal: %v", err)
	}
}

func TestTypeStringIsTheNameOfIPRoute(t *testing.T) {
	for typ, want := range map[Type]string{Unicast: "unicast", Local: "local", Throw: "throw", 0: "Type(0)", 200: "Type(200)"} {
		if got := typ.String(); got != want {
			t.Errorf("Type(%d) is %q, want %q", uint8(typ), got, want)
		}
	}
}
