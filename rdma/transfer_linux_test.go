package rdma_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash/crc64"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
)

// A transfer of any size is one to the program, and one message to the peer.
func TestATransferOfManyOperationsIsOneMessageToThePeer(t *testing.T) {
	owner, peer := pair(t)
	size := 256 << 20
	if testing.Short() {
		size = 32 << 20
	}
	ctx := within(t, 5*time.Minute)
	offered, local := allocate(t, size), allocate(t, size)
	fillFast(offered.Bytes(), 11)
	remote := register(t, ctx, owner, peer, offered.All())
	calls, moved := 0, int64(0)
	transfer := rdma.Transfer{
		Peer: addr(owner), Remote: remote, Local: []rdma.Slice{local.All()}, Payload: []byte("read"),
		Progress: func(n int64) {
			calls++
			if n <= moved {
				t.Errorf("%d bytes have moved, and then %d", moved, n)
			}
			moved = n
			if n := peer.Outstanding(); n > 8 {
				t.Errorf("%d operations are under way at a time", n)
			}
		},
	}
	began := time.Now()
	if err := peer.Read(ctx, &transfer); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d MiB read in %v", size>>20, time.Since(began).Round(time.Millisecond))
	if moved != int64(size) || calls != size>>20 {
		t.Errorf("%d calls tell that %d bytes have moved", calls, moved)
	}
	if sha256.Sum256(local.Bytes()) != sha256.Sum256(offered.Bytes()) {
		t.Error("a read brought something else")
	}
	fillFast(local.Bytes(), 12)
	transfer.Payload, moved, calls = []byte("written"), 0, 0
	if err := peer.Write(ctx, &transfer); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 100)
	for _, want := range []string{"read", "written"} {
		n, _, src, err := owner.Receive(ctx, b)
		if err != nil || string(b[:n]) != want || src != addr(peer) {
			t.Fatalf("received %q from %v, %v; want %q", b[:n], src, err, want)
		}
	}
	if sha256.Sum256(local.Bytes()) != sha256.Sum256(offered.Bytes()) {
		t.Error("a write brought something else")
	}
	transfer.Payload, transfer.Silent, moved = nil, true, 0
	if err := peer.Write(ctx, &transfer); err != nil {
		t.Fatal(err)
	}
	if _, _, ok, _ := owner.Socket().TryReadFromAddrPort(b); ok {
		t.Error("there are other messages")
	}
}

// fillFast is fill for much memory.
func fillFast(b []byte, seed uint64) {
	var key [32]byte
	key[0] = byte(seed)
	rand.NewChaCha8(key).Read(b)
}

func TestATransferOfManySlicesGoesToTheRightPlaces(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	const size = 3<<20 + 12345
	offered, local := allocate(t, size), allocate(t, size)
	fillFast(offered.Bytes(), 13)
	remote := register(t, ctx, owner, peer, offered.All())
	const at = 1<<20 - 77
	var slices []rdma.Slice
	var want []byte
	for off, n := 0, 1; off+n < size-at; off, n = off+n+3, n*3%10_007+1 {
		slices = append(slices, local.Slice(off, n))
	}
	if err := peer.Read(ctx, &rdma.Transfer{Peer: addr(owner), Remote: remote, Offset: at, Local: slices}); err != nil {
		t.Fatal(err)
	}
	for _, s := range slices {
		want = append(want, s.Bytes()...)
	}
	if !bytes.Equal(want, offered.Bytes()[at:at+len(want)]) {
		t.Errorf("%d slices have something else", len(slices))
	}
}

func TestATransferThatFailsLeavesNothingUnderWay(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	const size = 30 << 20
	offered, local := allocate(t, size), allocate(t, size)
	remote := register(t, ctx, owner, peer, offered.All())
	remote.Keys[12] ^= 0x5500
	err := peer.Read(ctx, &rdma.Transfer{Peer: addr(owner), Remote: remote, Local: []rdma.Slice{local.All()}, Payload: []byte("done")})
	if !errors.Is(err, rdma.ErrRemoteAccess) && !errors.Is(err, rdma.ErrDropped) {
		t.Errorf("the error is %v", err)
	}
	if n := peer.Outstanding(); n != 0 {
		t.Errorf("%d operations are under way", n)
	}
	reconnect(t, owner, peer) // and no message "done" before
	stop, cancel := context.WithTimeout(ctx, 30*time.Millisecond)
	defer cancel()
	remote.Keys[12] ^= 0x5500
	err = peer.Read(stop, &rdma.Transfer{Peer: addr(owner), Remote: remote, Local: []rdma.Slice{local.All()}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the error is %v", err)
	}
	// What was under way ends by itself, and Close waits for it.
	if err := local.Close(ctx); err != nil {
		t.Error(err)
	}
	if n := peer.Outstanding(); n != 0 {
		t.Errorf("%d operations are under way", n)
	}
	if err := peer.Read(ctx, &rdma.Transfer{Peer: addr(owner), Remote: remote, Local: []rdma.Slice{local.All()}}); !errors.Is(err, rdma.ErrRegionClosed) {
		t.Errorf("into a closed region: %v", err)
	}
}

// A stream of operations of all sizes, several at a time, reads and writes, each checked.
func TestTenThousandOperationsOfRandomSizesMoveTheRightBytes(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 1000
	}
	owner, peer := pair(t)
	randomOperations(t, owner, peer, n)
}

func randomOperations(t *testing.T, owner, peer *rdma.Conn, n int) {
	const depth, slot = 4, 1 << 20
	ctx := within(t, 10*time.Minute)
	table := crc64.MakeTable(crc64.ECMA)
	offered, local := allocate(t, depth*slot), allocate(t, depth*slot)
	fillFast(offered.Bytes(), 14)
	fillFast(local.Bytes(), 15)
	var keys [depth]cmsg.Key
	for i := range keys {
		keys[i] = offer(t, owner, peer, &rdma.Registration{Memory: offered.Slice(i*slot, slot)})
	}
	var wg sync.WaitGroup
	var moved [depth]int64
	for i := range depth {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(1, uint64(i)))
			theirs, ours := offered.Slice(i*slot, slot), local.Slice(i*slot, slot)
			var op rdma.Operation
			for k := range n / depth {
				// As many of 1 to 2 bytes as of 512 KiB to 1 MiB.
				size := min(int(math.Exp2(rng.Float64()*20)), slot)
				from, to := rng.IntN(slot-size+1), rng.IntN(slot-size+1)
				remote, mine := theirs.Slice(from, size), ours.Slice(to, size)
				source, target, start := remote, mine, peer.StartRead
				if k%2 == 0 {
					source, target, start = mine, remote, peer.StartWrite
				}
				if size >= 8 {
					fill(source.Bytes()[rng.IntN(size-7):][:8], rng.Uint64())
				} else {
					fill(source.Bytes(), rng.Uint64())
				}
				want := crc64.Checksum(source.Bytes(), table)
				op.Peer, op.Key, op.Offset, op.Silent = addr(owner), keys[i], uint64(from), true
				op.Local = append(op.Local[:0], mine)
				if size > 2 && k%3 == 0 {
					cut := 1 + rng.IntN(size-2)
					op.Local = append(op.Local[:0], mine.Slice(0, cut), mine.Slice(cut, size-cut))
				}
				if err := start(ctx, &op); err != nil {
					t.Error(err)
					return
				}
				if err := op.Wait(ctx); err != nil {
					t.Error(err)
					return
				}
				if got := crc64.Checksum(target.Bytes(), table); got != want {
					t.Errorf("operation %d of %d, %d bytes: checksum %x, want %x", k, i, size, got, want)
					return
				}
				moved[i] += int64(size)
			}
		})
	}
	wg.Wait()
	t.Logf("%d operations moved %d MiB", n, (moved[0]+moved[1]+moved[2]+moved[3])>>20)
}

// The kernel writes to mapped memory only, so that neither the collector nor a
// stack that moves can be in its way.
func TestOperationsWorkWhileTheCollectorRunsAndStacksMove(t *testing.T) {
	owner, peer := pair(t)
	defer debug.SetGCPercent(debug.SetGCPercent(1))
	ctx := within(t, 2*time.Minute)
	const workers, size = 4, 20_000
	n := 100
	if testing.Short() {
		n = 25
	}
	var wg, collector sync.WaitGroup
	done := make(chan struct{})
	collector.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
				runtime.GC()
			}
		}
	})
	for w := range workers {
		offered, local := allocate(t, size), allocate(t, size)
		key := offer(t, owner, peer, &rdma.Registration{Memory: offered.All()})
		wg.Go(func() {
			var garbage [][]byte
			for i := range n {
				fill(offered.Bytes(), uint64(w)<<32|uint64(i))
				// On a stack that is grown before, between and after.
				op := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.Slice(0, size/2), local.Slice(size/2, size/2)}, Silent: true}
				grow(i % 10)
				if err := peer.StartRead(ctx, &op); err != nil {
					t.Error(err)
					return
				}
				grow(10 + i%10)
				garbage = append(garbage[len(garbage)/2:], make([]byte, 1<<12))
				if err := op.Wait(ctx); err != nil {
					t.Error(err)
					return
				}
				if !bytes.Equal(local.Bytes(), offered.Bytes()) {
					t.Errorf("operation %d brought something else", i)
					return
				}
				reg := rdma.Registration{Memory: local.All(), Tied: i%2 == 0}
				grow(i % 12)
				if err := peer.Offer(ctx, &reg, nil, addr(owner)); err != nil {
					t.Error(err)
					return
				}
				if err := reg.Revoke(); err != nil {
					t.Error(err)
					return
				}
			}
			runtime.KeepAlive(garbage)
		})
	}
	wg.Wait()
	close(done)
	collector.Wait()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	t.Logf("%d collections", stats.NumGC)
}

// grow makes the stack 2^n KiB deep.
func grow(n int) byte {
	var b [1024]byte
	b[n] = byte(n)
	if n == 0 {
		return b[0]
	}
	return grow(n-1) + b[n]
}

// Memory that a peer reaches may be of a file in memory, and of huge pages.
func TestMappedFilesAreMoved(t *testing.T) {
	labtest.Need(t, labtest.RDMA, labtest.Root)
	owner, peer := pair(t)
	for _, test := range []struct {
		name string
		dir  string
		size int
	}{
		{"a file of tmpfs", "/dev/shm", 3 << 20},
		{"huge pages", hugepages(t), 2 << 20},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := within(t, patience)
			f, err := os.Create(filepath.Join(test.dir, fmt.Sprintf("rdma-%d", os.Getpid())))
			if err != nil {
				t.Fatal(err)
			}
			defer os.Remove(f.Name())
			defer f.Close()
			if err := f.Truncate(int64(test.size)); err != nil {
				t.Fatal(err)
			}
			mapped, err := rdma.Map(f, 0, test.size)
			if err != nil {
				t.Fatal(err)
			}
			defer mapped.Close(ctx)
			fillFast(mapped.Bytes(), 16)
			local := allocate(t, test.size)
			reg := rdma.Registration{Memory: mapped.All()}
			if err := owner.Register(ctx, &reg, addr(peer)); err != nil {
				t.Fatal(err)
			}
			remote, err := reg.Remote()
			if err != nil {
				t.Fatal(err)
			}
			transfer := rdma.Transfer{Peer: addr(owner), Remote: remote, Local: []rdma.Slice{local.All()}}
			if err := peer.Read(ctx, &transfer); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(local.Bytes(), mapped.Bytes()) {
				t.Error("a read brought something else")
			}
			fillFast(local.Bytes(), 17)
			if err := peer.Write(ctx, &transfer); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(local.Bytes(), mapped.Bytes()) {
				t.Error("a write brought something else")
			}
		})
	}
}

// hugepages mounts a hugetlbfs of two pages.
func hugepages(t *testing.T) string {
	t.Helper()
	const pages = "/proc/sys/vm/nr_hugepages"
	if err := os.WriteFile(pages, []byte("2"), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.WriteFile(pages, []byte("0"), 0) })
	dir := t.TempDir()
	if err := syscall.Mount("none", dir, "hugetlbfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, 0) })
	return dir
}

func TestRDMAGoesOverIPv6Too(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	owner, peer := listenAt(t, labtest.HCA(t, 1).IPv6(), 0, nil), listenAt(t, labtest.HCA(t, 2).IPv6(), 0, nil)
	randomOperations(t, owner, peer, 40)
}
