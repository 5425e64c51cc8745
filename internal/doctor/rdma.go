package doctor

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/rdskit/rdskit/internal/shell"
	"github.com/rdskit/rdskit/rdsinfo"
)

func checkRDMA(f *Facts, r *report) {
	if len(f.Last.RDMAPorts) == 0 {
		r.skip("", "this host has no RDMA device")
		return
	}
	for _, p := range f.Last.RDMAPorts {
		subject := fmt.Sprintf("%s port %d", p.Device, p.Port)
		if p.State != "ACTIVE" {
			do := remedy{"ibstat " + shell.Quote(p.Device), "look at the cable and the subnet manager"}
			if p.LinkLayer == "Ethernet" {
				do = remedy{"rdma link show", "names its network interface, which is down or has no carrier"}
			}
			r.warn(subject, do, "its state is %s, not ACTIVE: it carries nothing", p.State)
			continue
		}
		regions := ""
		if p.Regions > 0 {
			regions = fmt.Sprintf("; RDS has %s of %d bytes in all on it", count(p.Regions, "memory region"), p.RegionBytes)
		}
		r.ok(subject, "it is active, on %s, with %d GIDs%s", p.LinkLayer, len(p.GIDs), regions)
	}
	f.checkRDMACounters(r)
	for _, a := range f.Last.Namespace.Addresses {
		if a.Transport != "infiniband" {
			continue
		}
		p, gid, ok := f.activeGID(a)
		if !ok {
			r.warn(a.Addr.String(), remedy{"rdma link show", "names the network interface of each port: the address belongs on one whose port is active"},
				"infiniband serves it, but no active port has a GID for it or its interface %s", a.Device)
			continue
		}
		r.ok(a.Addr.String(), "GID %v of %s port %d", gid.GID, p.Device, p.Port)
	}
	f.checkQueuePairs(r)
}

// portAlarms are counters of RDMA ports that should not move, with what it means if they do. Those of the
// architecture have one name; drivers call theirs as they like.
var portAlarms = map[string]string{
	"symbol_error":                    "bits were received wrong",
	"link_error_recovery":             "the link had to recover from errors",
	"link_downed":                     "the link was lost",
	"port_rcv_errors":                 "packets were received damaged",
	"port_rcv_remote_physical_errors": "packets were received that were damaged before",
	"port_xmit_discards":              "packets were not sent, the link was down or congested",
	"local_link_integrity_errors":     "the link had more errors than it may",
	"excessive_buffer_overrun_errors": "packets came for which there was no room",
	"out_of_sequence":                 "packets were lost or changed their order",
	"packet_seq_err":                  "packets were lost or changed their order, as the peer says",
	"local_ack_timeout_err":           "peers acknowledged too late, or packets were lost",
	"rnr_nak_retry_err":               "peers were not ready to receive for too long",
	"out_of_seq_request":              "packets were lost or changed their order",
	"rcvd_seq_err":                    "packets were lost or changed their order, as the peer says",
	softRetries:                       "peers acknowledged too late, or packets were lost",
	"retry_exceeded_err":              "peers did not acknowledge at all: connections broke",
	"retry_rnr_exceeded_err":          "peers were not ready to receive for too long: connections broke",
	"send_err":                        "packets could not be sent",
}

// softRetries counts what a soft device sends again, as it does on a busy host without a loss.
const softRetries = "completer_retry_err"

func (f *Facts) checkRDMACounters(r *report) {
	for _, c := range rdsinfo.CompareRDMACounters(f.First.RDMACounters, f.Last.RDMACounters) {
		meaning := portAlarms[c.Name]
		if meaning == "" {
			continue
		}
		v := Warn
		if c.Name == softRetries {
			v = Info
		}
		r.add(v, fmt.Sprintf("%s port %d", c.Device, c.Port), remedy{"rdma statistic show link " + shell.Quote(fmt.Sprintf("%s/%d", c.Device, c.Port)), "look at the link, its cable, switch and settings for loss (PFC, ECN)"},
			"%s: %s grew by %d in %s", meaning, c.Name, c.Moved, seconds(f))
	}
}

// checkQueuePairs looks for connections that RDS takes to be up and the device does not.
func (f *Facts) checkQueuePairs(r *report) {
	if len(f.Last.RDMAConnections) == 0 {
		return // it may not be known
	}
	for _, d := range rdsinfo.Compare(f.First.Snapshot, f.Last.Snapshot).Connections {
		if d.Transport != "infiniband" || !f.isLocal(d.Local) ||
			d.Before.Value != rdsinfo.StateUp || d.After.Value != rdsinfo.StateUp || !d.Before.Known || !d.After.Known {
			continue
		}
		// What was so at both looks is not just being made.
		wrong := queuePairs(f.Last, d.Local, d.Remote)
		if wrong != "" && wrong == queuePairs(f.First, d.Local, d.Remote) {
			r.fail(connectionName(d.Local, d.Remote, d.TOS, d.Transport), remedy{command: kernelLog},
				"RDS takes it to be up, but %s: nothing gets through", wrong)
		}
	}
}

// queuePairs says what is wrong with all of the queue pairs of a connection; nothing if one works.
func queuePairs(b *rdsinfo.Bundle, local, remote netip.Addr) string {
	wrong := "it has no queue pair"
	for i := range b.RDMAConnections {
		switch c := &b.RDMAConnections[i]; {
		case c.Local != local || c.Remote != remote:
		case c.Works():
			return ""
		case c.QueuePair != 0:
			wrong = fmt.Sprintf("its queue pair %d of %s is in state %s, not RTS", c.QueuePair, c.Device, c.QueuePairState)
		}
	}
	return wrong
}

// activeGID finds a GID of an active port for an address.
func (f *Facts) activeGID(a rdsinfo.Address) (rdsinfo.RDMAPort, rdsinfo.GID, bool) {
	active := slices.DeleteFunc(slices.Clone(f.Last.RDMAPorts), func(p rdsinfo.RDMAPort) bool { return p.State != "ACTIVE" })
	return rdsinfo.FindGID(active, a.Addr)
}
