package rdma_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
)

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

func TestARegistrationIsOfferedByManyAtOnce(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	reg := rdma.Registration{Memory: allocate(t, 4096).All()}
	if err := owner.Register(ctx, &reg, addr(peer)); err != nil {
		t.Fatal(err)
	}
	const n = 20
	var all sync.WaitGroup
	for range n {
		all.Go(func() {
			if err := owner.Offer(ctx, &reg, nil, addr(peer)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range n {
		if _, key, _, err := peer.Receive(ctx, nil); err != nil || key != reg.Key() {
			t.Fatalf("offer %d: key %v, want %v; %v", i, key, reg.Key(), err)
		}
	}
}

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

const envChild = "RDMA_TEST_CHILD"

// A process that may lock no memory cannot register any, and one that may lock a
// byte can register all.
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
