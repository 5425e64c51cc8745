package info

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/rdsinfo"
)

// attributes are what a Filter asks of a row. Those that its table does not have
// are the zero value.
type attributes struct {
	local, peer         netip.Addr
	localPort, peerPort rdsinfo.Optional[uint16]
	tos                 rdsinfo.Optional[uint8]
	transport, state    string
}

func connectionAttributes(c *rdsinfo.Connection) attributes {
	return attributes{local: c.Local, peer: c.Remote, tos: c.TOS, transport: c.Transport, state: c.State().String()}
}

// deltaAttributes have the state that the connection is in now.
func deltaAttributes(c *rdsinfo.ConnectionDelta) attributes {
	return attributes{local: c.Local, peer: c.Remote, tos: c.TOS, transport: c.Transport, state: c.After.Value.String()}
}

func socketAttributes(k *rdsinfo.Socket) attributes {
	a := between(k.Bound, k.Connected)
	if !k.Connected.Addr().IsValid() || k.Connected.Addr().IsUnspecified() {
		a.peer, a.peerPort = netip.Addr{}, rdsinfo.Optional[uint16]{}
	}
	return a
}

func messageAttributes(m *rdsinfo.Message) attributes {
	a := between(m.Local, m.Remote)
	a.tos = m.TOS
	return a
}

func tcpAttributes(k *rdsinfo.TCPSocket) attributes {
	a := between(k.Local, k.Remote)
	a.tos = k.TOS
	a.transport = "tcp"
	return a
}

func ibAttributes(c *rdsinfo.IBConnection) attributes {
	return attributes{local: c.Local, peer: c.Remote, tos: c.TOS, transport: "infiniband"}
}

func pathAttributes(c *rdsinfo.PathConnection) attributes {
	return attributes{local: c.Local, peer: c.Remote, tos: rdsinfo.Optional[uint8]{Value: c.TOS, Known: true}, transport: c.Transport}
}

func counterAttributes(*rdsinfo.Counter) attributes { return attributes{} }

func between(local, peer netip.AddrPort) attributes {
	port := func(a netip.AddrPort) rdsinfo.Optional[uint16] {
		return rdsinfo.Optional[uint16]{Value: a.Port(), Known: true}
	}
	return attributes{local: local.Addr(), peer: peer.Addr(), localPort: port(local), peerPort: port(peer)}
}

// A Filter keeps the rows that have all of its attributes. The zero Filter keeps all.
// A row whose table does not have one of the attributes is not kept.
type Filter struct {
	terms []term
}

type term struct {
	text  string
	match func(attributes) bool
}

// A filterKey is an attribute, with what its values look like and how they are compared.
type filterKey struct {
	name, want string
	match      func(value string) (func(attributes) bool, bool)
}

var filterKeys = []filterKey{
	{"local", "an address or a prefix", addrMatch(func(a attributes) netip.Addr { return a.local })},
	{"peer", "an address or a prefix", addrMatch(func(a attributes) netip.Addr { return a.peer })},
	{"port", "a number from 0 to 65535", portMatch},
	{"tos", "a number from 0 to 255", tosMatch},
	{"transport", "infiniband, tcp or loopback", nameMatch([]string{"infiniband", "tcp", "loopback"}, func(a attributes) string { return a.transport })},
	{"state", "up, connecting, down or error", nameMatch([]string{"up", "connecting", "down", "error"}, func(a attributes) string { return a.state })},
}

// FilterKeys returns the keys that ParseFilter takes.
func FilterKeys() []string {
	keys := make([]string, len(filterKeys))
	for i, k := range filterKeys {
		keys[i] = k.name
	}
	return keys
}

// ParseFilter reads terms KEY=VALUE, separated by commas. The keys are local and peer,
// an address or a prefix; port, of either end; tos; transport; and state.
func ParseFilter(text string) (Filter, error) {
	var f Filter
	for one := range strings.SplitSeq(text, ",") {
		key, value, _ := strings.Cut(one, "=")
		i := slices.IndexFunc(filterKeys, func(k filterKey) bool { return k.name == key })
		if i < 0 {
			return Filter{}, refuse(text, one, "KEY=VALUE, with the key one of local, peer, port, tos, transport and state")
		}
		match, ok := filterKeys[i].match(value)
		if !ok {
			return Filter{}, refuse(text, one, filterKeys[i].want)
		}
		f.terms = append(f.terms, term{one, match})
	}
	return f, nil
}

// refuse says what a term should be, and names it if it is one of several.
func refuse(text, term, want string) error {
	if term == text {
		return errors.New("want " + want)
	}
	return fmt.Errorf("%q: want %s", term, want)
}

// String returns the text that was parsed.
func (f Filter) String() string {
	texts := make([]string, len(f.terms))
	for i, t := range f.terms {
		texts[i] = t.text
	}
	return strings.Join(texts, ",")
}

// And returns a filter that keeps what both keep.
func (f Filter) And(g Filter) Filter {
	return Filter{append(slices.Clip(f.terms), g.terms...)}
}

func (f Filter) keeps(a attributes) bool {
	for _, t := range f.terms {
		if !t.match(a) {
			return false
		}
	}
	return true
}

func addrMatch(of func(attributes) netip.Addr) func(string) (func(attributes) bool, bool) {
	return func(value string) (func(attributes) bool, bool) {
		if p, err := netip.ParsePrefix(value); err == nil {
			if p.Addr().Is4In6() && p.Bits() >= 96 {
				p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
			}
			return func(a attributes) bool { return p.Contains(of(a)) }, true
		}
		want, err := netip.ParseAddr(value)
		// The kernel's tables have no zones.
		want = want.Unmap().WithZone("")
		return func(a attributes) bool { return of(a) == want }, err == nil
	}
}

func portMatch(value string) (func(attributes) bool, bool) {
	n, err := strconv.ParseUint(value, 10, 16)
	want := rdsinfo.Optional[uint16]{Value: uint16(n), Known: true}
	return func(a attributes) bool { return a.localPort == want || a.peerPort == want }, err == nil
}

func tosMatch(value string) (func(attributes) bool, bool) {
	n, err := strconv.ParseUint(value, 10, 8)
	want := rdsinfo.Optional[uint8]{Value: uint8(n), Known: true}
	return func(a attributes) bool { return a.tos == want }, err == nil
}

func nameMatch(names []string, of func(attributes) string) func(string) (func(attributes) bool, bool) {
	return func(value string) (func(attributes) bool, bool) {
		return func(a attributes) bool { return of(a) == value }, slices.Contains(names, value)
	}
}
