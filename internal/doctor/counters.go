package doctor

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rdskit/rdskit/internal/shell"
	"github.com/rdskit/rdskit/rdsinfo"
)

// alarms are counters that should not move, with what it means if they do. Counters are those
// of the whole kernel.
var alarms = []struct {
	name    string
	verdict Verdict
	meaning string
	remedy  func(*Facts) remedy // nil for none
}{
	{"recv_drop_bad_checksum", Warn, "messages arrived damaged",
		just("ip -s -s link", "counts errors: look at network cards, cables and offloads, by ethtool -S DEVICE")},
	{"recv_drop_no_sock", Warn, "messages arrived for ports that no socket is bound to",
		just("rds-info -ak", "is the receiving program among them; do senders have the right port")},
	{"recv_drop_dead_sock", Info, "messages arrived for sockets that were being closed", nil},
	{"recv_drop_old_seq", Info, "messages arrived twice, as after a reconnect; the second was dropped", nil},
	{"send_stuck_rm", Warn, "messages were dropped after a failed RDMA operation", just(kernelLog, "")},
	{"cong_send_error", Warn, "sends were refused since their destination is congested: a receiver on a peer does not read fast enough", (*Facts).toFindTheReceiver},
	{"cong_send_blocked", Warn, "sends waited since their destination is congested: a receiver on a peer does not read fast enough", (*Facts).toFindTheReceiver},
	{"send_queue_full", Info, "send buffers were full: programs send faster than peers acknowledge", nil},
	{"conn_reset", Info, "paths of connections were set up anew; a new connection counts several times", nil},
}

// just is a remedy for the network namespace, whatever the facts are.
func just(command, advice string) func(*Facts) remedy {
	return func(f *Facts) remedy { return remedy{f.here(command), advice} }
}

// toFindTheReceiver looks for it on the peers.
func (f *Facts) toFindTheReceiver() remedy {
	const most = 16 // in one command
	var peers []string
	for _, p := range f.Last.Peers {
		if host := shell.Quote(p.Remote.String()); !slices.Contains(peers, host) {
			peers = append(peers, host)
		}
	}
	if len(peers) == 0 || len(peers) > most {
		return remedy{f.here("rds-info -an"), "lists the peers: rds-info doctor on them finds the receiver"}
	}
	return remedy{fmt.Sprintf(`for host in %s; do ssh "$host" rds-info doctor --quiet; done`, strings.Join(peers, " ")), "finds the receiver on the peers"}
}

func checkCounters(f *Facts, r *report) {
	if _, err := f.Last.Snapshot.Counters(); err != nil {
		r.skip("", "without RDS there are none")
		return
	}
	if !f.moved() {
		r.skip("", "one snapshot does not show what moves: give --from twice, the earlier bundle first")
		return
	}
	moved := make(map[string]uint64)
	for _, c := range rdsinfo.Compare(f.First.Snapshot, f.Last.Snapshot).Counters {
		moved[c.Name] = c.Moved.Value
	}
	for _, a := range alarms {
		if n := moved[a.name]; n > 0 {
			do := none
			if a.remedy != nil {
				do = a.remedy(f)
			}
			r.add(a.verdict, a.name, do, "%s: %s in %s", a.meaning, times(n), seconds(f))
		}
	}
	if len(r.findings) == 0 {
		r.ok("", "nothing was dropped in %s", seconds(f))
	}
}

func times(n uint64) string {
	if n == 1 {
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}
