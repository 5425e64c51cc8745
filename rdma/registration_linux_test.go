package rdma_test

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/rdmadev"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdsinfo"
	"github.com/rdskit/rdskit/rdssock"
)

// read is a read of all of local through key, to its end.
func read(t testing.TB, owner, peer *rdma.Conn, key cmsg.Key, local rdma.Slice) error {
	t.Helper()
	return do(t, peer.StartRead, &rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local}})
}

// reconnect waits until messages go both ways, which after a failure they do by a new connection.
func reconnect(t testing.TB, a, b *rdma.Conn) {
	t.Helper()
	ctx := within(t, patience)
	for _, to := range [][2]*rdma.Conn{{a, b}, {b, a}} {
		if _, err := to[0].Socket().WriteToAddrPort([]byte("are you there?"), addr(to[1])); err != nil {
			t.Fatal(err)
		}
		for b := make([]byte, 20); b[0] != 'a'; {
			if _, _, _, err := to[1].Receive(ctx, b); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestAKeyForUseOnceIsGoneAfterTheMessageOfAnOperation(t *testing.T) {
	owner, peer := pair(t)
	offered, local := allocate(t, 8192), allocate(t, 8192)
	for _, tied := range []bool{false, true} {
		reconnect(t, owner, peer)
		reg := rdma.Registration{Memory: offered.All(), UseOnce: true, Invalidate: true, Tied: tied}
		key := offer(t, owner, peer, &reg)
		if err := read(t, owner, peer, key, local.All()); err != nil {
			t.Fatal(err)
		}
		// The message arrives, and the registration is flushed in the background.
		if _, _, _, err := owner.Receive(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		if err := owner.FlushRegions(); err != nil {
			t.Fatal(err)
		}
		if err := read(t, owner, peer, key, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
			t.Errorf("tied is %t: used twice: %v", tied, err)
		}
		if err := reg.Revoke(); err != nil {
			t.Errorf("tied is %t: revoking what was used: %v", tied, err)
		}
		if err := reg.Revoke(); !errors.Is(err, rdma.ErrNotRegistered) {
			t.Errorf("tied is %t: revoking twice: %v", tied, err)
		}
	}
}

func TestARevokedKeyIsRefusedAndOthersWork(t *testing.T) {
	owner, peer := pair(t)
	first, second, local := allocate(t, 4096), allocate(t, 4096), allocate(t, 4096)
	fill(second.Bytes(), 9)
	regs := []*rdma.Registration{{Memory: first.All()}, {Memory: second.All()}}
	keys := []cmsg.Key{offer(t, owner, peer, regs[0]), offer(t, owner, peer, regs[1])}
	if err := read(t, owner, peer, keys[0], local.All()); err != nil {
		t.Fatal(err)
	}
	// The acknowledgement of the offers came with the read's message.
	if err := regs[0].Revoke(); err != nil {
		t.Fatal(err)
	}
	if regs[0].Key() != 0 {
		t.Error("it has a key")
	}
	if err := read(t, owner, peer, keys[0], local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("a revoked key: %v", err)
	}
	retry(t, func() error { return read(t, owner, peer, keys[1], local.All()) })
	if !bytes.Equal(local.Bytes(), second.Bytes()) {
		t.Error("the other key brings something else")
	}
	// A Registration can be used again, also for other memory.
	regs[0].Memory = second.All()
	key := offer(t, owner, peer, regs[0])
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Error(err)
	}
	if _, err := regs[0].Remote(); err != nil {
		t.Error(err)
	}
}

// Without invalidation the kernel ends access when it flushes, not before.
func TestAReleasedKeyWorksUntilTheRegionsAreFlushed(t *testing.T) {
	owner, peer := pair(t)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Fatal(err)
	}
	if err := reg.Release(); err != nil {
		t.Fatal(err)
	}
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Errorf("released: %v", err)
	}
	if err := owner.FlushRegions(); err != nil {
		t.Fatal(err)
	}
	if err := read(t, owner, peer, key, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("released and flushed: %v", err)
	}
}

// The message that offers a key keeps the registration until it is acknowledged.
func TestRevokingTakesEffectWhenTheOfferIsAcknowledged(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	if err := owner.Socket().Flush(ctx); err != nil {
		t.Fatal(err)
	}
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	for q := 0; q == 0; { // until no acknowledgement is asked for
		pending, err := owner.Socket().Pending()
		if err != nil {
			t.Fatal(err)
		}
		if q = pending.Messages; q == 0 {
			key = offer(t, owner, peer, &reg)
		}
	}
	if err := reg.Revoke(); err != nil {
		t.Fatal(err)
	}
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Fatalf("the first use after a revocation whose offer is not acknowledged: %v", err)
	}
	// Its message brought the acknowledgement.
	if err := owner.FlushRegions(); err != nil {
		t.Fatal(err)
	}
	if err := read(t, owner, peer, key, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("the second use: %v", err)
	}
}

func TestAKeyIsOfferedAgainAndToOthers(t *testing.T) {
	owner, peer := pair(t)
	other := listen(t, 2, nil)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	fill(offered.Bytes(), 8)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	for _, to := range []*rdma.Conn{peer, other, listen(t, 1, nil)} {
		if again := offer(t, owner, to, &reg); again != key {
			t.Errorf("key %v, and then %v", key, again)
		}
		clear(local.Bytes())
		if err := read(t, owner, to, key, local.All()); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(local.Bytes(), offered.Bytes()) {
			t.Error("it brings something else")
		}
	}
	if err := other.Offer(t.Context(), &reg, nil, addr(peer)); !errors.Is(err, rdma.ErrInUse) {
		t.Errorf("offered by another Conn: %v", err)
	}
	if err := owner.Register(t.Context(), &reg, addr(peer)); !errors.Is(err, rdma.ErrInUse) {
		t.Errorf("registered again: %v", err)
	}
}

// The kernel does not make a broken connection anew while memory is registered on it. The message that offered it
// keeps it registered, and cannot be acknowledged any more.
func TestATiedRegistrationHoldsABrokenConnectionUntilItIsRevokedAndCanceled(t *testing.T) {
	owner, peer := pair(t)
	reconnect(t, owner, peer)
	ctx := within(t, patience)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All(), Tied: true}
	key := offer(t, owner, peer, &reg)
	if err := read(t, owner, peer, key^0x5500, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Fatalf("a wrong key: %v", err)
	}
	// One thread of the kernel takes down and makes all connections.
	unusedTOS++
	others := [2]*rdma.Conn{listenAt(t, addr(owner).Addr(), unusedTOS, nil), listenAt(t, addr(peer).Addr(), unusedTOS, nil)}
	if _, err := others[0].Socket().WriteToAddrPort([]byte("are you there?"), addr(others[1])); err != nil {
		t.Fatal(err)
	}
	op := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}}
	for _, step := range []func() error{
		func() error { return nil },
		reg.Revoke,
	} {
		if err := step(); err != nil {
			t.Fatal(err)
		}
		if err := peer.StartRead(ctx, &op); err != nil {
			t.Fatal(err)
		}
		if err := op.Wait(within(t, 2*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the connection came back although memory is registered on it: %v", err)
		}
		if err := peer.Cancel(within(t, patience), addr(owner)); err != nil {
			t.Fatal(err)
		}
		if err := op.Wait(ctx); !errors.Is(err, rdma.ErrCanceled) {
			t.Errorf("canceled: %v", err)
		}
	}
	b := make([]byte, 20)
	if _, _, ok, err := others[1].Socket().TryReadFromAddrPort(b); ok || err != nil {
		t.Errorf("another connection was made meanwhile: %t, %v", ok, err)
	}
	if err := owner.Cancel(within(t, patience), addr(peer)); err != nil {
		t.Fatal(err)
	}
	if err := owner.FlushRegions(); err != nil {
		t.Fatal(err)
	}
	reconnect(t, owner, peer)
	if n, _, _, err := others[1].Receive(ctx, b); err != nil || n == 0 {
		t.Errorf("another connection: %d bytes, %v", n, err)
	}
}

// unusedTOS is a type of service for which there is no connection, once it is raised.
var unusedTOS uint8 = 100

func TestWhatIsTooLargeForOneKeyIsRegisteredInPieces(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	const size = 2<<20 + 5000
	offered, local := allocate(t, size+1), allocate(t, size)
	fill(offered.Bytes(), 10)
	// It begins within a page: each MiB is in 257 of them.
	reg := rdma.Registration{Memory: offered.Slice(1, size)}
	if err := owner.Offer(ctx, &reg, nil, addr(peer)); !errors.Is(err, rdma.ErrTooLarge) || !strings.Contains(err.Error(), "Remote") {
		t.Errorf("offered: %v", err)
	}
	once := rdma.Registration{Memory: offered.All(), UseOnce: true}
	if err := owner.Register(ctx, &once, addr(peer)); !errors.Is(err, rdma.ErrTooLarge) {
		t.Errorf("registered for use once: %v", err)
	}
	if _, err := reg.Remote(); !errors.Is(err, rdma.ErrNotRegistered) {
		t.Errorf("not registered: %v", err)
	}
	if err := owner.Register(ctx, &reg, addr(peer)); err != nil {
		t.Fatal(err)
	}
	remote, err := reg.Remote()
	if err != nil || len(remote.Keys) != 3 || reg.Key() != 0 {
		t.Fatalf("%+v, %v", remote, err)
	}
	if err := peer.Read(ctx, &rdma.Transfer{Peer: addr(owner), Remote: remote, Local: []rdma.Slice{local.All()}}); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(local.Bytes(), offered.Bytes()[1:]) {
		t.Error("it brings something else")
	}
}

func TestRegistrationsThatCannotBeSayWhy(t *testing.T) {
	owner, peer := pair(t)
	closed := allocate(t, 1)
	if err := closed.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	open := allocate(t, 10)
	for _, test := range []struct {
		name   string
		memory rdma.Slice
		want   error
	}{
		{"a closed region", closed.All(), rdma.ErrRegionClosed},
		{"no region", rdma.Slice{}, rdma.ErrRange},
		{"no bytes", open.Slice(3, 0), rdma.ErrRange},
		{"out of range", open.Slice(3, 8), rdma.ErrRange},
	} {
		for _, tied := range []bool{false, true} {
			reg := rdma.Registration{Memory: test.memory, Tied: tied}
			if err := owner.Offer(t.Context(), &reg, nil, addr(peer)); !errors.Is(err, test.want) {
				t.Errorf("%s, offered: %v", test.name, err)
			}
			if err := owner.Register(t.Context(), &reg, addr(peer)); !errors.Is(err, test.want) {
				t.Errorf("%s, registered: %v", test.name, err)
			}
		}
	}
}

// The kernel registers memory only on a connection, and says EAGAIN until there is one.
func TestATiedOfferWaitsForTheConnectionWithinItsContext(t *testing.T) {
	owner, _ := pair(t)
	offered := allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All(), Tied: true}
	nowhere := netip.AddrPortFrom(netip.MustParseAddr("10.8.0.78"), 4000)
	began := time.Now()
	err := owner.Offer(within(t, 300*time.Millisecond), &reg, []byte("x"), nowhere)
	if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "no RDMA connection to 10.8.0.78") {
		t.Errorf("the error is %v", err)
	}
	if took := time.Since(began); took < 300*time.Millisecond {
		t.Errorf("it gave up after %v", took)
	}
	if reg.Key() != 0 {
		t.Error("it is registered")
	}
	if err := reg.Revoke(); !errors.Is(err, rdma.ErrNotRegistered) {
		t.Errorf("revoked: %v", err)
	}
}

func TestARegionRevokesItsKeysWhenItIsClosed(t *testing.T) {
	owner, peer := pair(t)
	local := allocate(t, 4096)
	offered, err := rdma.Allocate(4096)
	if err != nil {
		t.Fatal(err)
	}
	regs := []rdma.Registration{{Memory: offered.All()}, {Memory: offered.Slice(0, 10)}}
	key := offer(t, owner, peer, &regs[0])
	offer(t, owner, peer, &regs[1])
	if err := read(t, owner, peer, key, local.All()); err != nil {
		t.Fatal(err)
	}
	if err := offered.Close(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	if regs[0].Key() != 0 || regs[1].Key() != 0 {
		t.Error("there is a key")
	}
	if err := read(t, owner, peer, key, local.All()); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("a key of a closed region: %v", err)
	}
}

func TestARegionOfAClosedSocketIsClosedToo(t *testing.T) {
	owner, peer := pair(t)
	offered, err := rdma.Allocate(4096)
	if err != nil {
		t.Fatal(err)
	}
	reg := rdma.Registration{Memory: offered.All()}
	offer(t, owner, peer, &reg)
	if err := owner.Socket().Close(); err != nil {
		t.Fatal(err)
	}
	if err := offered.Close(within(t, patience)); err != nil {
		t.Error(err)
	}
	again := rdma.Registration{Memory: allocate(t, 1).All()}
	for _, tied := range []bool{false, true} {
		again.Tied = tied
		if err := owner.Offer(t.Context(), &again, nil, addr(peer)); !errors.Is(err, net.ErrClosed) {
			t.Errorf("offered on a closed socket: %v", err)
		}
	}
}

// Registering cancels its own message, and nothing else that goes to nobody at the own address.
func TestTransfersWithinAnAddressGoOnWhileMemoryIsRegistered(t *testing.T) {
	owner, _ := pair(t)
	peer := listen(t, 1, nil)
	ctx := within(t, patience)
	const size = 20 << 20
	offered, local := allocate(t, size), allocate(t, size)
	remote := register(t, ctx, owner, peer, offered.All())
	done := make(chan error)
	go func() {
		done <- peer.Read(ctx, &rdma.Transfer{Peer: addr(owner), Remote: remote, Local: []rdma.Slice{local.All()}})
	}()
	other := rdma.Registration{Memory: allocate(t, 4096).All()}
	for {
		select {
		case err := <-done:
			if err != nil {
				t.Error(err)
			}
			return
		default:
		}
		if err := peer.Register(ctx, &other, addr(owner)); err != nil {
			t.Fatal(err)
		}
		if err := other.Revoke(); err != nil {
			t.Fatal(err)
		}
	}
}

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

// regions is how many regions the kernel has allocated and not freed, by RDS's counters and by the
// list of the device.
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

const envChild = "RDMA_TEST_CHILD"

// A process that may lock no memory cannot register any, and one that may lock a byte can register all.
func TestRegistrationNeedsLockedMemory(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	if os.Getenv(envChild) != "" {
		owner, peer := listen(t, 1, nil), listen(t, 2, nil)
		reg := rdma.Registration{Memory: allocate(t, 1<<20).All()}
		err := owner.Offer(within(t, patience), &reg, nil, addr(peer))
		if os.Getenv(envChild) == "may" {
			if err != nil {
				t.Error(err)
			}
			return
		}
		if !errors.Is(err, rdma.ErrNoLockedMemory) || !errors.Is(err, syscall.EPERM) || !strings.Contains(err.Error(), "RLIMIT_MEMLOCK") {
			t.Errorf("the error is %v", err)
		}
		return
	}
	labtest.Need(t, labtest.RDMA, labtest.Root)
	const memlock = 8 // RLIMIT_MEMLOCK
	var was syscall.Rlimit
	if err := syscall.Getrlimit(memlock, &was); err != nil {
		t.Fatal(err)
	}
	defer syscall.Setrlimit(memlock, &was)
	for i, child := range []string{"may not", "may"} {
		if err := syscall.Setrlimit(memlock, &syscall.Rlimit{Cur: uint64(i), Max: was.Max}); err != nil {
			t.Fatal(err)
		}
		// The directory of the test binary may not be open to other users.
		cmd := exec.CommandContext(within(t, patience), "/proc/self/exe", "-test.run=^"+t.Name()+"$")
		cmd.Env = append(os.Environ(), envChild+"="+child)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v:\n%s", child, err, out)
		}
	}
}

func TestOtherTransportsHaveNoRDMA(t *testing.T) {
	labtest.Need(t, labtest.TCP)
	for name, a := range map[string]string{"tcp": "127.0.0.1", "loopback": "127.0.0.1"} {
		cfg := &rdssock.Config{}
		if name == "tcp" {
			cfg.Transport = rdssock.TransportTCP
		}
		sock, err := rdssock.Listen(netip.AddrPortFrom(netip.MustParseAddr(a), 0), cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rdma.New(sock, nil)
		if !errors.Is(err, rdma.ErrNoRDMA) || !errors.Is(err, rdssock.ErrNotSupported) || !errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "transport "+name) {
			t.Errorf("%s: %v", name, err)
		}
		// The socket is as it was.
		if _, err := sock.WriteToAddrPort(nil, sock.LocalAddr().(rdssock.Addr).AddrPort); err != nil {
			t.Error(err)
		}
		sock.Close()
	}
}
