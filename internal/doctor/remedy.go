package doctor

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/internal/diagnose"
	"github.com/rdskit/rdskit/internal/shell"
	"github.com/rdskit/rdskit/rdsinfo"
)

// A remedy is what to do about a finding: a command that can be pasted into a shell, and what else there is
// to say about it.
type remedy struct{ command, advice string }

// none is the remedy of what needs none.
var none remedy

// kernelLog shows what the kernel said about RDS.
const kernelLog = "dmesg | grep -i rds"

// toLoad is the remedy for a module that is not loaded.
func toLoad(m diagnose.Missing) remedy {
	command, advice := m.Remedy()
	return remedy{command, advice}
}

// here is a command, of which some words may come from elsewhere, for the network namespace that is looked at.
func (f *Facts) here(command string, words ...string) string {
	for _, w := range words {
		command += " " + shell.Quote(w)
	}
	switch {
	case f.NetNS == "":
		return command
	case strings.Trim(f.NetNS, "0123456789") == "":
		return "nsenter --net=/proc/" + f.NetNS + "/ns/net " + command
	case strings.Contains(f.NetNS, "/"):
		return "nsenter --net=" + shell.Quote(f.NetNS) + " " + command
	}
	return "ip netns exec " + shell.Quote(f.NetNS) + " " + command
}

// there is a command for another host, which has the address.
func there(host netip.Addr, command string) string {
	return "ssh " + shell.Quote(host.String()) + " " + command
}

// again is this command, for another network namespace if that is given, with other arguments.
func again(netNS string, args ...string) string {
	words := []string{"rds-info", "doctor"}
	if netNS != "" {
		words = append(words, "--netns", shell.Quote(netNS))
	}
	for _, a := range args {
		words = append(words, shell.Quote(a))
	}
	return strings.Join(words, " ")
}

// toGoTo is the remedy where another network namespace is to be looked at.
func toGoTo(ns *rdsinfo.Namespace, args ...string) remedy {
	switch {
	case ns.Name != "":
		return remedy{command: again(ns.Name, args...)}
	case ns.PID != 0:
		return remedy{command: again(strconv.Itoa(ns.PID), args...)}
	}
	return remedy{"lsns -t net", "lists the network namespaces with a process in each: rds-info doctor --netns PID"}
}

// toHave is the remedy for an address that is not here.
func (f *Facts) toHave(a netip.Addr) remedy {
	if on, ok := onLink(f.Last.Namespace.Addresses, a); ok {
		return remedy{f.here("ip address add", fmt.Sprintf("%v/%d", a.WithZone(""), on.Bits), "dev", on.Device), "if this host should have it"}
	}
	return remedy{f.here("ip -brief address"), fmt.Sprintf("lists those that are; if it should be one: ip address add %v/BITS dev DEVICE", a)}
}

// toGetUp is the remedy for a link that is down.
func (f *Facts) toGetUp(device string) remedy {
	return remedy{command: f.here("ip link set", device, "up")}
}

// toGetCarrier is that for one without a carrier.
func (f *Facts) toGetCarrier(device string) remedy {
	return remedy{f.here("ethtool", device), "tells whether it detects a link: look at the cable, the switch port and the far end"}
}

// toLookAtBoth is the remedy where no cause shows.
func toLookAtBoth(p rdsinfo.Peer) remedy {
	return remedy{kernelLog, fmt.Sprintf("here and on %v, where rds-info doctor may see more", p.Remote)}
}
