package stress

import (
	"testing"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/stress/flow"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// Without a fence the kernel reports a read when its message is acknowledged, which may be too early.
func TestReadsAreFencedAlsoAheadOfTheirAnswer(t *testing.T) {
	for _, noFence := range []bool{false, true} {
		cfg := &Config{Tasks: 1, Shape: flow.Shape{Depth: 1}, RDMA: RDMA{Size: 4096, Vector: 1, NoFence: noFence}}
		m, err := makeRemote(&worker{run: &Run{cfg: cfg}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		if !m.flows[0].Take(0, wire.RDMA{Op: wire.RDMARead, Key: 1, Size: 4096, Vector: 1}, 0) {
			t.Fatal("the request was refused")
		}
		it := cmsg.Parse(cmsg.Mainline, m.operate(0, 0))
		if !it.Next() {
			t.Fatal("no control message")
		}
		args, err := it.Message().RDMAArgs()
		if want := cmsg.FlagNotifyMe | cmsg.FlagFence; err != nil || args.Flags != want {
			t.Errorf("with NoFence %v the flags are %v, want %v; %v", noFence, args.Flags, want, err)
		}
		if err := m.memory.Close(); err != nil {
			t.Error(err)
		}
	}
}
