package route

import (
	"net/netip"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jsimonetti/rtnetlink/v2"
)

func TestNewAddress(t *testing.T) {
	tests := []struct {
		name string
		msg  rtnetlink.AddressMessage
		want Address
		ok   bool
	}{{
		name: "IPv4",
		msg: rtnetlink.AddressMessage{Family: syscall.AF_INET, PrefixLength: 24, Index: 2, Attributes: &rtnetlink.AddressAttributes{
			Address: ip("10.9.0.1"), Local: ip("10.9.0.1"),
		}},
		want: Address{Prefix: netip.MustParsePrefix("10.9.0.1/24"), Index: 2, Usable: true},
		ok:   true,
	}, {
		name: "the near end of a point-to-point link",
		msg: rtnetlink.AddressMessage{Family: syscall.AF_INET, PrefixLength: 32, Index: 2, Attributes: &rtnetlink.AddressAttributes{
			Address: ip("10.9.0.9"), Local: ip("10.9.0.1"),
		}},
		want: Address{Prefix: netip.MustParsePrefix("10.9.0.1/32"), Index: 2, Usable: true},
		ok:   true,
	}, {
		name: "IPv6 has no IFA_LOCAL",
		msg: rtnetlink.AddressMessage{Family: syscall.AF_INET6, PrefixLength: 64, Index: 2, Attributes: &rtnetlink.AddressAttributes{
			Address: ip("fd00::1"), Flags: syscall.IFA_F_PERMANENT,
		}},
		want: Address{Prefix: netip.MustParsePrefix("fd00::1/64"), Index: 2, Usable: true},
		ok:   true,
	}, {
		name: "tentative, in the header's flags",
		msg: rtnetlink.AddressMessage{Family: syscall.AF_INET6, PrefixLength: 64, Flags: syscall.IFA_F_TENTATIVE, Attributes: &rtnetlink.AddressAttributes{
			Address: ip("fd00::1"),
		}},
		want: Address{Prefix: netip.MustParsePrefix("fd00::1/64")},
		ok:   true,
	}, {
		name: "duplicate and deprecated",
		msg: rtnetlink.AddressMessage{Family: syscall.AF_INET6, PrefixLength: 64, Attributes: &rtnetlink.AddressAttributes{
			Address: ip("fd00::1"), Flags: ifaFDadfailed | syscall.IFA_F_DEPRECATED,
		}},
		want: Address{Prefix: netip.MustParsePrefix("fd00::1/64"), Deprecated: true},
		ok:   true,
	}, {
		name: "no attributes",
		msg:  rtnetlink.AddressMessage{Family: syscall.AF_INET},
	}, {
		name: "no address",
		msg:  rtnetlink.AddressMessage{Family: syscall.AF_INET, Attributes: &rtnetlink.AddressAttributes{}},
	}, {
		name: "a prefix longer than the address",
		msg: rtnetlink.AddressMessage{Family: syscall.AF_INET, PrefixLength: 33, Attributes: &rtnetlink.AddressAttributes{
			Address: ip("10.9.0.1"),
		}},
	}, {
		name: "another family",
		msg:  rtnetlink.AddressMessage{Family: syscall.AF_DECnet, Attributes: &rtnetlink.AddressAttributes{Address: ip("10.9.0.1")}},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := newAddress(&tt.msg)
			if ok != tt.ok {
				t.Fatalf("ok = %v", ok)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
				t.Error("(-want +got)", diff)
			}
		})
	}
}
