// Package hosts makes hosts of network namespaces: h1 to hN, each with one
// Ethernet device, an IPv4 and an IPv6 address, joined by a cable (two hosts)
// or a bridge (more).
package hosts

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// Max is how many hosts a lab can have: their addresses end in 1 to Max.
const Max = 250

// NetNSDir is where ip-netns(8) looks for named namespaces.
const NetNSDir = "/run/netns"

// Device is the name of each host's Ethernet device.
const Device = "eth0"

// A Host is one network namespace that stands for a machine.
type Host struct {
	N int // 1 and up
}

// All is the hosts 1 to n.
func All(n int) []Host {
	all := make([]Host, n)
	for i := range all {
		all[i] = Host{N: i + 1}
	}
	return all
}

// Parse finds the host of a name such as "h2".
func Parse(name string) (Host, error) {
	digits, ok := strings.CutPrefix(name, "h")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > Max || digits != strconv.Itoa(n) {
		return Host{}, fmt.Errorf("%q is not the name of a host: they are h1, h2, and so on", name)
	}
	return Host{N: n}, nil
}

// Name is the host's name, which ip-netns(8) takes as well.
func (h Host) Name() string { return "h" + strconv.Itoa(h.N) }

func (h Host) String() string { return h.Name() }

// NetNS is the path of the host's network namespace.
func (h Host) NetNS() string { return filepath.Join(NetNSDir, h.Name()) }

// IPv4 is the host's IPv4 address.
func (h Host) IPv4() netip.Addr { return netip.AddrFrom4([4]byte{10, 9, 0, byte(h.N)}) }

// IPv6 is the host's IPv6 address. Its last group reads as the host's number.
func (h Host) IPv6() netip.Addr {
	return netip.MustParseAddr("fd00::" + strconv.Itoa(h.N))
}

// EtcHosts is the text of /etc/hosts in a lab of n hosts.
func EtcHosts(hostname string, n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "127.0.0.1\tlocalhost %s\n::1\tlocalhost\n", hostname)
	for _, h := range All(n) {
		fmt.Fprintf(&b, "%s\t%s\n%s\t%s\n", h.IPv4(), h, h.IPv6(), h)
	}
	return b.String()
}
