package stress

import (
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/stress/flow"
)

// C does not say that it ends, and its memory is gone then.
func TestOperationsThatFailWhenAPeerOfCEndsDoNotCount(t *testing.T) {
	type outcome struct{ Told, Excused int }
	for _, tt := range []struct {
		name    string
		rdskit  bool
		ago     time.Duration // that an operation failed
		left    bool
		status  cmsg.Status
		outcome outcome
	}{
		{"just before it ended", false, farewell / 2, true, cmsg.StatusRemoteError, outcome{0, 1}},
		{"long before it ended", false, farewell * 2, true, cmsg.StatusRemoteError, outcome{1, 0}},
		{"before this side ended", false, farewell / 2, false, cmsg.StatusOtherError, outcome{1, 0}},
		{"of a peer of rdskit", true, farewell / 2, true, cmsg.StatusDropped, outcome{1, 0}},
		{"not at all", false, farewell / 2, true, cmsg.StatusSuccess, outcome{0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			run := &Run{cfg: &Config{Tasks: 1, MaxFindings: 10}, epoch: time.Now(), stop: make(chan struct{})}
			shape := &flow.RDMA{Size: 8, Vector: 1, Peer: tt.rdskit}
			w := &worker{run: run, lat: newLatencies(), asked: new(asked), remotes: make([]netip.AddrPort, 1)}
			w.remote = &remote{w: w, cfg: &RDMA{}, depth: 1, shape: *shape, flows: []*flow.Remote{flow.NewRemote(shape, 0, 1, 0)}}
			run.workers = []*worker{w}
			end := func() {
				w.remote.flows[0].Job(0).Begin(0, false)
				w.remote.completed(cmsg.RDMAStatus{Status: tt.status})
			}
			end()
			run.epoch = run.epoch.Add(-tt.ago)
			excused := run.Excuse(tt.left)
			if diff := cmp.Diff(tt.outcome, outcome{int(w.stats.RDMAFailed), excused}); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			if findings, _, _ := run.News(); len(findings) != tt.outcome.Told {
				t.Errorf("%d findings, want %d", len(findings), tt.outcome.Told)
			}
			end()
			if tt.left && !tt.rdskit && len(w.remote.failures) > 0 {
				t.Error("one that failed afterwards counts")
			}
		})
	}
}
