package abi

import (
	"net/netip"
	"testing"
)

func TestSockaddrRoundTrip(t *testing.T) {
	tests := []struct {
		name  string
		in    string
		scope uint32
		size  int
		out   string
		back  uint32
	}{
		{"IPv4", "10.0.0.1:4000", 0, SizeofSockaddrIn, "10.0.0.1:4000", 0},
		{"IPv4 has no scope", "10.0.0.1:4000", 7, SizeofSockaddrIn, "10.0.0.1:4000", 0},
		{"IPv4-mapped is IPv4", "[::ffff:10.0.0.1]:65535", 0, SizeofSockaddrIn, "10.0.0.1:65535", 0},
		{"IPv6", "[fd00::1]:1", 0, SizeofSockaddrIn6, "[fd00::1]:1", 0},
		{"link-local IPv6 keeps its scope", "[fe80::1]:0", 3, SizeofSockaddrIn6, "[fe80::1]:0", 3},
		{"the zone is the scope's business", "[fe80::1%eth0]:9", 0xffffffff, SizeofSockaddrIn6, "[fe80::1]:9", 0xffffffff},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := [SizeofSockaddrIn6]byte{}
			for i := range b {
				b[i] = 0xaa
			}
			n := PutSockaddr(&b, netip.MustParseAddrPort(tt.in), tt.scope)
			if n != tt.size {
				t.Fatalf("%d bytes, want %d", n, tt.size)
			}
			for i, c := range b[n:] {
				if c != 0xaa {
					t.Errorf("byte %d after the address was written", i)
				}
			}
			ap, scope, ok := ParseSockaddr(b[:n])
			if !ok || ap != netip.MustParseAddrPort(tt.out) || scope != tt.back {
				t.Errorf("read back %v, scope %d, %t; want %s, scope %d", ap, scope, ok, tt.out, tt.back)
			}
		})
	}
}

// The kernel itself never writes an IPv4-mapped sockaddr_in6, but a program may
// be given one.
func TestMappedSockaddrIn6IsIPv4(t *testing.T) {
	b := make([]byte, SizeofSockaddrIn6)
	Layout{}.PutUint16(b, AF_INET6)
	copy(b[2:], []byte{0x13, 0x88})
	copy(b[18:], []byte{0xff, 0xff, 10, 9, 0, 1})
	if ap, _, ok := ParseSockaddr(b); !ok || ap != in4 {
		t.Errorf("%v, %t; want %v", ap, ok, in4)
	}
}

func TestSockaddrWithoutAddress(t *testing.T) {
	var b [SizeofSockaddrIn6]byte
	if n := PutSockaddr(&b, netip.AddrPort{}, 1); n != 0 || b != [SizeofSockaddrIn6]byte{} {
		t.Errorf("the zero AddrPort gives %d bytes, %x", n, b)
	}
}

func TestParseSockaddrRefuses(t *testing.T) {
	in := make([]byte, SizeofSockaddrIn)
	in6 := make([]byte, SizeofSockaddrIn6)
	unix := make([]byte, 110)
	Layout{}.PutUint16(in, AF_INET)
	Layout{}.PutUint16(in6, AF_INET6)
	Layout{}.PutUint16(unix, 1)
	tests := []struct {
		name string
		b    []byte
	}{
		{"nothing", nil},
		{"a short sockaddr_in", in[:15]},
		{"a short sockaddr_in6", in6[:27]},
		{"AF_UNSPEC, the name of an unbound socket", make([]byte, 16)},
		{"another family", unix},
	}
	for _, tt := range tests {
		if ap, scope, ok := ParseSockaddr(tt.b); ok || ap.IsValid() || scope != 0 {
			t.Errorf("%s: got %v, scope %d, %t", tt.name, ap, scope, ok)
		}
	}
	if _, _, ok := ParseSockaddr(append(in, 0, 0)); !ok {
		t.Error("a sockaddr_in with bytes after it was refused")
	}
}

func TestSockaddrAllocatesNothing(t *testing.T) {
	var b [SizeofSockaddrIn6]byte
	for _, s := range []string{"10.0.0.1:4000", "[fd00::1]:4000"} {
		ap := netip.MustParseAddrPort(s)
		if n := testing.AllocsPerRun(100, func() {
			n := PutSockaddr(&b, ap, 0)
			if got, _, ok := ParseSockaddr(b[:n]); !ok || got != ap {
				t.Fatal(got)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", s, n)
		}
	}
}

func FuzzParseSockaddr(f *testing.F) {
	var b [SizeofSockaddrIn6]byte
	f.Add(b[:0])
	for _, s := range []string{"10.0.0.1:4000", "[fd00::1]:1", "[fe80::1]:0"} {
		n := PutSockaddr(&b, netip.MustParseAddrPort(s), 5)
		f.Add(b[:n:n])
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		ap, scope, ok := ParseSockaddr(in)
		if !ok {
			return
		}
		var b [SizeofSockaddrIn6]byte
		n := PutSockaddr(&b, ap, scope)
		back, scope2, ok := ParseSockaddr(b[:n])
		if !ok || back != ap {
			t.Errorf("%v became %v, %t", ap, back, ok)
		}
		// An IPv4-mapped address is written as IPv4, which has no scope.
		if n == SizeofSockaddrIn6 && scope2 != scope {
			t.Errorf("scope %d became %d", scope, scope2)
		}
	})
}

func BenchmarkPutSockaddr(b *testing.B) {
	var sa [SizeofSockaddrIn6]byte
	ap := netip.MustParseAddrPort("10.0.0.1:4000")
	for b.Loop() {
		PutSockaddr(&sa, ap, 0)
	}
}

func BenchmarkParseSockaddr(b *testing.B) {
	var sa [SizeofSockaddrIn6]byte
	n := PutSockaddr(&sa, netip.MustParseAddrPort("10.0.0.1:4000"), 0)
	for b.Loop() {
		ParseSockaddr(sa[:n])
	}
}
