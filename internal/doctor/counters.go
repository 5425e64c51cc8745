package doctor

import (
	"fmt"

	"github.com/rdskit/rdskit/rdsinfo"
)

// alarms are counters that should not move, with what it means if they do. Counters are those
// of the whole kernel.
var alarms = []struct {
	name    string
	verdict Verdict
	meaning string
	remedy  string
}{
	{"recv_drop_bad_checksum", Warn, "messages arrived damaged", "look at network cards, cables and offloads: ethtool -S DEVICE"},
	{"recv_drop_no_sock", Warn, "messages arrived for ports that no socket is bound to", "is the receiving program running: rds-info -k; do senders have the right port"},
	{"recv_drop_dead_sock", Info, "messages arrived for sockets that were being closed", ""},
	{"recv_drop_old_seq", Info, "messages arrived twice, as after a reconnect; the second was dropped", ""},
	{"send_stuck_rm", Warn, "messages were dropped after a failed RDMA operation", "look at the kernel's log: dmesg"},
	{"cong_send_error", Warn, "sends were refused since their destination is congested: a receiver on a peer does not read fast enough",
		"rds-info doctor on the peers finds the receiver"},
	{"cong_send_blocked", Warn, "sends waited since their destination is congested: a receiver on a peer does not read fast enough",
		"rds-info doctor on the peers finds the receiver"},
	{"send_queue_full", Info, "send buffers were full: programs send faster than peers acknowledge", ""},
	{"conn_reset", Info, "paths of connections were set up anew; a new connection counts several times", ""},
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
			r.add(a.verdict, a.name, a.remedy, "%s: %s in %s", a.meaning, times(n), seconds(f))
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
