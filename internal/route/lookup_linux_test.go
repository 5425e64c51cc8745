package route

import (
	"encoding"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/jsimonetti/rtnetlink/v2"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"

	"github.com/rdskit/rdskit/internal/nlconn"
)

// A fakeKernel answers rtnetlink requests by their type.
type fakeKernel map[netlink.HeaderType]func(netlink.Message) ([]netlink.Message, error)

func (k fakeKernel) client(t *testing.T) *client {
	t.Helper()
	conn := nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
		if len(req) == 0 {
			return nil, io.EOF
		}
		answer, ok := k[req[0].Header.Type]
		if !ok {
			t.Errorf("unexpected request of type %d", req[0].Header.Type)
			return nil, io.EOF
		}
		msgs, err := answer(req[0])
		for i := range msgs {
			msgs[i].Header.Sequence = req[0].Header.Sequence
			msgs[i].Header.PID = req[0].Header.PID
		}
		return msgs, err
	})
	t.Cleanup(func() { conn.Close() })
	return &client{&nlconn.Conn{Conn: conn}}
}

func pack(t *testing.T, parts ...encoding.BinaryMarshaler) []byte {
	t.Helper()
	var data []byte
	for _, p := range parts {
		b, err := p.MarshalBinary()
		if err != nil {
			t.Fatal(err)
		}
		data = append(data, b...)
	}
	return data
}

func answer(typ netlink.HeaderType, data ...[]byte) func(netlink.Message) ([]netlink.Message, error) {
	return func(netlink.Message) ([]netlink.Message, error) {
		var msgs []netlink.Message
		for _, d := range data {
			msgs = append(msgs, netlink.Message{Header: netlink.Header{Type: typ}, Data: d})
		}
		if len(msgs) == 0 {
			return nil, io.EOF
		}
		return msgs, nil
	}
}

func refuse(errno syscall.Errno) func(netlink.Message) ([]netlink.Message, error) {
	return func(req netlink.Message) ([]netlink.Message, error) {
		return nltest.Error(int(errno), []netlink.Message{req})
	}
}

func bytesAttr(typ uint16, b []byte) attributes {
	return func(ae *netlink.AttributeEncoder) { ae.Bytes(typ, b) }
}

// eth0 is a RTM_NEWLINK message that package rtnetlink refuses: its statistics
// are longer than those of today's kernels, its hardware address shorter.
func eth0(t *testing.T, flags uint32, disableIPv6 byte) []byte {
	conf := make([]byte, 4*60)
	for i := range 4 {
		conf[4*confDisableIPv6+i] = disableIPv6
	}
	return pack(t, &rtnetlink.LinkMessage{Index: 7, Flags: flags}, attributes(func(ae *netlink.AttributeEncoder) {
		ae.String(syscall.IFLA_IFNAME, "eth0")
		ae.Uint32(syscall.IFLA_MTU, 1500)
		ae.Bytes(syscall.IFLA_ADDRESS, []byte{1})
		ae.Bytes(23, make([]byte, 400)) // IFLA_STATS64
		ae.Nested(iflaAFSpec, func(ae *netlink.AttributeEncoder) error {
			ae.Bytes(syscall.AF_INET, []byte{0, 0, 0, 0})
			ae.Nested(syscall.AF_INET6, func(ae *netlink.AttributeEncoder) error {
				ae.Uint32(1, 0)
				ae.Bytes(iflaInet6Conf, conf)
				return nil
			})
			return nil
		})
	}))
}

func ip(s string) net.IP { return netip.MustParseAddr(s).AsSlice() }

func TestLookupReadsTheKernelsAnswer(t *testing.T) {
	type attrs = rtnetlink.RouteAttributes
	tests := []struct {
		name  string
		dst   string
		cfg   Config
		reply attrs
		want  Route
	}{{
		name:  "on the link",
		dst:   "10.9.0.2",
		reply: attrs{Dst: ip("10.9.0.2"), OutIface: 7, Src: ip("10.9.0.1")},
		want:  Route{Source: netip.MustParseAddr("10.9.0.1"), Device: "eth0", Index: 7, Type: Unicast, MTU: 1500},
	}, {
		name:  "IPv4-mapped destination is asked for as IPv4",
		dst:   "::ffff:10.9.0.2",
		reply: attrs{Dst: ip("10.9.0.2"), OutIface: 7, Src: ip("10.9.0.1")},
		want:  Route{Source: netip.MustParseAddr("10.9.0.1"), Device: "eth0", Index: 7, Type: Unicast, MTU: 1500},
	}, {
		name:  "through a gateway, with the route's own MTU",
		dst:   "192.0.2.1",
		reply: attrs{OutIface: 7, Src: ip("10.9.0.1"), Gateway: ip("10.9.0.254"), Metrics: &rtnetlink.RouteMetrics{MTU: 9000}},
		want: Route{
			Source: netip.MustParseAddr("10.9.0.1"), Device: "eth0", Index: 7, Type: Unicast,
			Gateway: netip.MustParseAddr("10.9.0.254"), MTU: 9000,
		},
	}, {
		name:  "IPv4 through an IPv6 gateway",
		dst:   "192.0.2.1",
		reply: attrs{OutIface: 7, Src: ip("10.9.0.1"), Via: &rtnetlink.RouteVia{Family: syscall.AF_INET6, Addr: ip("fe80::1")}},
		want: Route{
			Source: netip.MustParseAddr("10.9.0.1"), Device: "eth0", Index: 7, Type: Unicast,
			Gateway: netip.MustParseAddr("fe80::1%eth0"), MTU: 1500,
		},
	}, {
		name:  "link-local addresses get the device as zone",
		dst:   "fe80::2%eth0",
		reply: attrs{OutIface: 7, Src: ip("fe80::1")},
		want:  Route{Source: netip.MustParseAddr("fe80::1%eth0"), Device: "eth0", Index: 7, Type: Unicast, MTU: 1500},
	}}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, err := newQuery(netip.MustParseAddr(tt.dst), &tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			c := fakeKernel{
				syscall.RTM_GETLINK: answer(syscall.RTM_NEWLINK, eth0(t, syscall.IFF_UP, 0)),
				syscall.RTM_GETROUTE: func(req netlink.Message) ([]netlink.Message, error) {
					var m rtnetlink.RouteMessage
					if err := m.UnmarshalBinary(req.Data); err != nil {
						t.Error(err)
					}
					if got, _ := netip.AddrFromSlice(m.Attributes.Dst); got != q.dst || int(m.DstLength) != got.BitLen() {
						t.Errorf("asked for %v/%d, want %v", got, m.DstLength, q.dst)
					}
					if q.device != "" && m.Attributes.OutIface != 7 {
						t.Errorf("asked for device %d, want 7", m.Attributes.OutIface)
					}
					if req.Header.Flags != netlink.Request {
						t.Errorf("flags %v: a dump or more", req.Header.Flags)
					}
					return answer(syscall.RTM_NEWROUTE, pack(t, &rtnetlink.RouteMessage{Type: uint8(Unicast), Attributes: tt.reply}))(req)
				},
			}.client(t)
			got, err := c.lookup(q)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
				t.Error("(-want +got)", diff)
			}
		})
	}
}

func TestLookupExplainsARefusal(t *testing.T) {
	tests := []struct {
		name   string
		dst    string
		device string
		link   []byte
		errno  syscall.Errno
		typ    Type
		says   string
	}{
		{name: "no route", dst: "10.1.0.1", errno: syscall.ENETUNREACH, says: "no entry of the routing table"},
		{name: "unreachable", dst: "10.1.0.1", errno: syscall.EHOSTUNREACH, typ: Unreachable, says: "ip route show type unreachable"},
		{name: "prohibit", dst: "10.1.0.1", errno: syscall.EACCES, typ: Prohibit, says: "prohibit"},
		{name: "blackhole", dst: "fd01::1", errno: syscall.EINVAL, typ: Blackhole, says: "blackhole"},
		{name: "no IPv6 in the kernel", dst: "fd01::1", errno: syscall.EOPNOTSUPP, says: "without IPv6"},
		{name: "IPv6 disabled", dst: "fd01::1", link: eth0(t, syscall.IFF_UP, 1), errno: syscall.ENETUNREACH, says: "IPv6 is disabled"},
		{name: "IPv6 enabled", dst: "fd01::1", link: eth0(t, syscall.IFF_UP, 0), errno: syscall.ENETUNREACH, says: "no entry of the routing table"},
		{name: "IPv6 disabled on the device", dst: "fd01::1", device: "eth0", link: eth0(t, syscall.IFF_UP, 1), errno: syscall.ENETUNREACH, says: "IPv6 is disabled"},
		{name: "device down", dst: "10.1.0.1", device: "eth0", link: eth0(t, 0, 0), errno: syscall.ENETUNREACH, says: "eth0 is down"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := fakeKernel{syscall.RTM_GETROUTE: refuse(tt.errno)}
			if tt.link != nil {
				k[syscall.RTM_GETLINK] = answer(syscall.RTM_NEWLINK, tt.link)
			}
			q, err := newQuery(netip.MustParseAddr(tt.dst), &Config{Device: tt.device})
			if err != nil {
				t.Fatal(err)
			}
			_, err = k.client(t).lookup(q)
			e, ok := errors.AsType[*Error](err)
			if !ok || !errors.Is(err, ErrNoRoute) || !errors.Is(err, tt.errno) || e.Type != tt.typ {
				t.Fatalf("got %v (%+v), want ErrNoRoute, %v, type %v", err, e, tt.errno, tt.typ)
			}
			if !strings.Contains(err.Error(), tt.says) || !strings.Contains(err.Error(), tt.dst) {
				t.Errorf("%q does not say %q and %s", err, tt.says, tt.dst)
			}
		})
	}
}

func TestALoopbackSourceReachesThisHostOnly(t *testing.T) {
	q := query{dst: netip.MustParseAddr("10.1.0.1"), source: netip.MustParseAddr("127.0.0.1")}
	err := refusal(q, syscall.EINVAL)
	if err == nil || err.Type != 0 || !errors.Is(err, ErrNoRoute) || !strings.Contains(err.Error(), "127.0.0.1 is a loopback address, from which only this host is reached") {
		t.Errorf("got %v", err)
	}
}

func TestLookupRefusesWhatIsNoAnswer(t *testing.T) {
	route := func(typ Type, a rtnetlink.RouteAttributes) []byte {
		return pack(t, &rtnetlink.RouteMessage{Type: uint8(typ), Attributes: a})
	}
	good := route(Unicast, rtnetlink.RouteAttributes{OutIface: 7, Src: ip("10.9.0.1")})
	tests := []struct {
		name  string
		route func(netlink.Message) ([]netlink.Message, error)
		link  func(netlink.Message) ([]netlink.Message, error)
		kind  error
		says  string
	}{
		{name: "no message", route: answer(syscall.RTM_NEWROUTE), says: "0 answers about one route"},
		{name: "a message of another type", route: answer(syscall.RTM_NEWLINK, good), says: "0 answers about one route"},
		{name: "two messages", route: answer(syscall.RTM_NEWROUTE, good, good), says: "2 answers about one route"},
		{name: "a short message", route: answer(syscall.RTM_NEWROUTE, good[:8]), says: "too short"},
		{name: "an address cut off", route: answer(syscall.RTM_NEWROUTE, good[:len(good)-4]), says: "invalid"},
		{
			name: "an empty address", says: "length: 0",
			route: answer(syscall.RTM_NEWROUTE, pack(t, &rtnetlink.RouteMessage{Type: uint8(Unicast)}, bytesAttr(syscall.RTA_PREFSRC, nil))),
		},
		{
			name: "a route without a source", kind: ErrNoAddress, says: "eth0 has no IPv4 address",
			route: answer(syscall.RTM_NEWROUTE, route(Unicast, rtnetlink.RouteAttributes{OutIface: 7})),
		},
		{
			name: "a route that forbids", kind: ErrNoRoute, says: "type throw",
			route: answer(syscall.RTM_NEWROUTE, route(Throw, rtnetlink.RouteAttributes{OutIface: 7})),
		},
		{name: "an unknown errno", route: refuse(syscall.EIO), says: "input/output error"},
		{name: "a device that went", route: answer(syscall.RTM_NEWROUTE, good), link: refuse(syscall.ENODEV), says: "device 7: "},
		{name: "a short link", route: answer(syscall.RTM_NEWROUTE, good), link: answer(syscall.RTM_NEWLINK, make([]byte, 15)), says: "15 bytes"},
		{
			name: "a link with an MTU of two bytes", says: "not a uint32",
			route: answer(syscall.RTM_NEWROUTE, good),
			link:  answer(syscall.RTM_NEWLINK, pack(t, &rtnetlink.LinkMessage{Index: 7}, bytesAttr(syscall.IFLA_MTU, []byte{1, 2}))),
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			k := fakeKernel{syscall.RTM_GETROUTE: tt.route, syscall.RTM_GETLINK: tt.link}
			if tt.link == nil {
				k[syscall.RTM_GETLINK] = answer(syscall.RTM_NEWLINK, eth0(t, syscall.IFF_UP, 0))
			}
			got, err := k.client(t).lookup(query{dst: netip.MustParseAddr("10.9.0.2")})
			if err == nil {
				t.Fatalf("got %+v", got)
			}
			if tt.kind != nil && !errors.Is(err, tt.kind) {
				t.Errorf("got %v, want %v", err, tt.kind)
			}
			if !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%q does not say %q", err, tt.says)
			}
		})
	}
}

func TestSourceIsAskedForAsRTASRC(t *testing.T) {
	var sources []string
	c := fakeKernel{
		syscall.RTM_GETLINK: answer(syscall.RTM_NEWLINK, eth0(t, syscall.IFF_UP, 0)),
		syscall.RTM_GETROUTE: func(req netlink.Message) ([]netlink.Message, error) {
			ad, err := netlink.NewAttributeDecoder(req.Data[syscall.SizeofRtMsg:])
			if err != nil {
				t.Error(err)
			}
			source := "none"
			for ad.Next() {
				if ad.Type() == syscall.RTA_SRC {
					a, _ := netip.AddrFromSlice(ad.Bytes())
					source = netip.PrefixFrom(a, int(req.Data[2])).String()
				}
			}
			sources = append(sources, source)
			typ := Unicast
			if source == "none" {
				typ = Local // the question whether the source is local
			}
			return answer(syscall.RTM_NEWROUTE, pack(t, &rtnetlink.RouteMessage{
				Type: uint8(typ), Attributes: rtnetlink.RouteAttributes{OutIface: 7},
			}))(req)
		},
	}.client(t)
	q := query{dst: netip.MustParseAddr("10.9.0.2"), source: netip.MustParseAddr("10.9.0.77")}
	got, err := c.lookup(q)
	if err != nil {
		t.Fatal(err)
	}
	if got.Source != q.source {
		t.Errorf("source %v, want the one asked for, %v", got.Source, q.source)
	}
	if diff := cmp.Diff([]string{"none", "10.9.0.77/32"}, sources); diff != "" {
		t.Error("sources asked for (-want +got)", diff)
	}
}
