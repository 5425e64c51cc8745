package rdma_test

import (
	"sync"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
)

// A registration along with messages that the other end of a young connection has no
// buffer for never returns. Each type of service has connections of its own, and many
// that are made at a time are made slowly.
func TestTheFirstRegistrationsOfAConnectionReturn(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	for _, test := range []struct {
		name string
		tied bool
	}{
		{"by a message to the own address", false},
		{"by the message that offers it", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := within(t, 30*time.Second)
			var regs sync.WaitGroup
			for range 12 {
				unusedTOS++
				owner := listenAt(t, labtest.HCA(t, 1).IPv4(), unusedTOS, nil)
				peer := listenAt(t, labtest.HCA(t, 2).IPv4(), unusedTOS, nil)
				memory := allocate(t, 10*4096)
				regs.Go(func() {
					for i := range 10 {
						reg := &rdma.Registration{Memory: memory.Slice(i*4096, 4096), Tied: test.tied}
						if err := owner.Offer(ctx, reg, []byte("x"), addr(peer)); err != nil {
							t.Error(err)
							return
						}
						if _, key, _, err := peer.Receive(ctx, make([]byte, 1)); err != nil || key != reg.Key() {
							t.Errorf("received key %v, want %v; %v", key, reg.Key(), err)
						}
					}
				})
			}
			regs.Wait()
		})
	}
}
