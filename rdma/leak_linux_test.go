package rdma_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/rdmadev"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdsinfo"
)

// counters are the kernel's, by name.
func counters(t testing.TB) map[string]uint64 {
	t.Helper()
	s, err := rdsinfo.Read(nil, rdsinfo.Counters)
	if err != nil {
		t.Fatal(err)
	}
	cs, err := s.Counters()
	if err != nil {
		t.Fatal(err)
	}
	values := make(map[string]uint64)
	for _, c := range cs {
		values[c.Name] = c.Value
	}
	return values
}

// regions is how many regions the kernel has allocated and not freed, by RDS's
// counters and by the list of the device.
func regions(t testing.TB) (counted, listed int) {
	t.Helper()
	c := counters(t)
	counted = int(c["ib_rdma_mr_8k_alloc"] - c["ib_rdma_mr_8k_free"] + c["ib_rdma_mr_1m_alloc"] - c["ib_rdma_mr_1m_free"])
	client, err := rdmadev.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	mrs, err := client.MemoryRegions()
	if err != nil {
		t.Fatal(err)
	}
	return counted, len(mrs)
}

func TestTenThousandRegistrationsLeaveNothingBehind(t *testing.T) {
	owner, peer := pair(t)
	ctx := context.Background()
	small, large := allocate(t, 4096), allocate(t, 100_000)
	// The kernel keeps regions for use again: as many as were in use at a time.
	cycle := func(i int) {
		memory := small.All()
		if i%4 == 0 {
			memory = large.Slice(i%50_000, 50_000)
		}
		reg := rdma.Registration{Memory: memory, Tied: i%3 == 0}
		if err := owner.Offer(ctx, &reg, nil, addr(peer)); err != nil {
			t.Fatal(err)
		}
		_, key, _, err := peer.Receive(ctx, nil)
		if err != nil {
			t.Fatal(err)
		}
		if key != reg.Key() {
			t.Fatalf("offered %v, received %v", reg.Key(), key)
		}
		if i%10 == 0 {
			// What comes back acknowledges the offers.
			if _, err := peer.Socket().WriteToAddrPort(nil, addr(owner)); err != nil {
				t.Fatal(err)
			}
			if _, _, _, err := owner.Receive(ctx, nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := reg.Revoke(); err != nil {
			t.Fatal(err)
		}
	}
	settle := func() {
		reconnect(t, owner, peer)
		if err := owner.Socket().Flush(within(t, patience)); err != nil {
			t.Fatal(err)
		}
		if err := owner.FlushRegions(); err != nil {
			t.Fatal(err)
		}
	}
	held := make([]rdma.Registration, 128)
	for i := range held {
		held[i].Memory = small.All()
		if i%2 == 0 {
			held[i].Memory = large.Slice(0, 50_000)
		}
		if err := owner.Register(ctx, &held[i], addr(peer)); err != nil {
			t.Fatal(err)
		}
	}
	for i := range held {
		if err := held[i].Revoke(); err != nil {
			t.Fatal(err)
		}
	}
	settle()
	counted, listed := regions(t)
	before := holdings(t)
	n := 10_000
	if testing.Short() {
		n = 2000
	}
	for i := range n {
		cycle(i)
	}
	settle()
	countedAfter, listedAfter := regions(t)
	if countedAfter != counted || listedAfter != listed {
		t.Errorf("the kernel counts %d regions and lists %d, and before %d and %d", countedAfter, listedAfter, counted, listed)
	}
	if after := holdings(t); after != before {
		t.Errorf("the process has %+v, and before %+v", after, before)
	}
	t.Logf("%d registrations: the kernel has %d regions, as before, and the device %d", n, countedAfter, listedAfter)
}

// A holding is what a process has.
type holding struct{ mappings, descriptors, goroutines int }

func holdings(t testing.TB) holding {
	t.Helper()
	fds, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return holding{mappings(t), len(fds), runtime.NumGoroutine()}
}

// Conns that are closed while memory is registered and operations are under way.
func TestClosedConnsLeaveNothingBehind(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	cycle := func() {
		conns := []*rdma.Conn{listen(t, 1, nil), listen(t, 2, nil)}
		offered, err := rdma.Allocate(100_000)
		if err != nil {
			t.Fatal(err)
		}
		local := allocate(t, 100_000)
		key := offer(t, conns[0], conns[1], &rdma.Registration{Memory: offered.All()})
		ops := make([]rdma.Operation, 5)
		for i := range ops {
			ops[i] = rdma.Operation{Peer: addr(conns[0]), Key: key, Local: []rdma.Slice{local.All()}}
			if err := conns[1].StartRead(t.Context(), &ops[i]); err != nil {
				t.Fatal(err)
			}
		}
		for i := range conns {
			if err := conns[len(conns)-1-i].Close(); err != nil {
				t.Error(err)
			}
		}
		for i := range ops {
			if err := ops[i].Wait(within(t, patience)); err != nil && !errors.Is(err, rdma.ErrCanceled) {
				t.Error(err)
			}
		}
		for _, r := range []*rdma.Region{offered, local} {
			if err := r.Close(within(t, patience)); err != nil {
				t.Error(err)
			}
		}
	}
	// What is cached, by this process and the kernel, is made by the first.
	for range 3 {
		cycle()
	}
	counted, listed := regions(t)
	before := holdings(t)
	for range 30 {
		cycle()
	}
	if after := holdings(t); after != before {
		t.Errorf("the process has %+v, and before %+v", after, before)
	}
	if c, l := regions(t); c > counted || l > listed {
		t.Errorf("the kernel counts %d regions and lists %d, and before %d and %d", c, l, counted, listed)
	}
}
