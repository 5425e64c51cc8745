package rdma_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc64"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

// envOwner makes the test binary offer memory at an address, until it is ended.
const envOwner = "RDMA_TEST_OWNER"

// ownerSize is how much memory it has.
const ownerSize = 256 << 20

// ownerMain does what messages ask for: "offer" and "offer once" offer the first
// MiB, "register" describes all of the memory, "revoke" revokes what was offered
// last.
func ownerMain(address string) error {
	sock, err := rdssock.Listen(netip.MustParseAddrPort(address), &rdssock.Config{Transport: rdssock.TransportInfiniBand})
	if err != nil {
		return err
	}
	conn, err := rdma.New(sock, nil)
	if err != nil {
		return err
	}
	region, err := rdma.Allocate(ownerSize)
	if err != nil {
		return err
	}
	fillFast(region.Slice(0, 1<<20).Bytes(), 20)
	ctx := context.Background()
	var all, offered *rdma.Registration
	b := make([]byte, 100)
	fmt.Println("ready")
	for {
		n, _, peer, err := conn.Receive(ctx, b)
		if err != nil {
			return err
		}
		var answer []byte
		switch string(b[:n]) {
		case "hello":
			answer = []byte("hello")
		case "flush":
			if err := conn.FlushRegions(); err != nil {
				return err
			}
			answer = []byte("flushed")
		case "offer", "offer once":
			offered = &rdma.Registration{Memory: region.Slice(0, 1<<20), UseOnce: n > 5, Invalidate: true}
			if err := conn.Offer(ctx, offered, []byte("offered"), peer); err != nil {
				return err
			}
			continue
		case "register":
			if all == nil {
				all = &rdma.Registration{Memory: region.All()}
				if err := conn.Register(ctx, all, peer); err != nil {
					return err
				}
			}
			remote, err := all.Remote()
			if err != nil {
				return err
			}
			if answer, err = remote.MarshalBinary(); err != nil {
				return err
			}
		case "revoke":
			if err := offered.Revoke(); err != nil {
				return err
			}
			if err := conn.FlushRegions(); err != nil {
				return err
			}
			answer = []byte("revoked")
		default:
			continue // what follows an operation
		}
		if _, err := sock.WriteToAddrPort(answer, peer); err != nil {
			return err
		}
	}
}

// An owner is the process on the other machine that has memory.
type owner struct {
	t       *testing.T
	conn    *rdma.Conn // on this machine
	machine *labtest.PeerMachine
	address netip.AddrPort
	port    uint16
}

// newOwner starts one, and opens a socket to talk to it.
func newOwner(t *testing.T) *owner {
	t.Helper()
	o := &owner{t: t, machine: labtest.Peer(t), port: 6000}
	o.conn = listenAt(t, labtest.Own(t).IPv4(), 0, nil)
	o.start()
	return o
}

func (o *owner) start() {
	o.t.Helper()
	o.port++
	o.address = netip.AddrPortFrom(o.machine.IPv4(), o.port)
	exe, err := os.Executable()
	if err != nil {
		o.t.Fatal(err)
	}
	cmd := exec.CommandContext(o.t.Context(), exe)
	cmd.Env = append(os.Environ(), envOwner+"="+o.address.String())
	cmd.Stderr = os.Stderr
	o.machine.Move(cmd)
	out, err := cmd.StdoutPipe()
	if err != nil {
		o.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
	})
	b := make([]byte, 10)
	if n, err := out.Read(b); err != nil || string(b[:n]) != "ready\n" {
		o.t.Fatalf("the owner says %q, %v", b[:n], err)
	}
}

// ask asks the owner for something and returns its answer and the key that came with it.
func (o *owner) ask(what string) ([]byte, cmsg.Key) {
	o.t.Helper()
	ctx := within(o.t, patience)
	if _, _, err := o.conn.Socket().WriteMsgContext(ctx, []byte(what), nil, o.address); err != nil {
		o.t.Fatal(err)
	}
	b := make([]byte, 1<<16)
	for {
		n, key, src, err := o.conn.Receive(ctx, b)
		if err != nil {
			o.t.Fatalf("asked for %q: %v", what, err)
		}
		if src == o.address {
			return b[:n], key
		}
	}
}

func (o *owner) offer(what string) cmsg.Key {
	o.t.Helper()
	b, key := o.ask(what)
	if string(b) != "offered" || key == 0 {
		o.t.Fatalf("the owner says %q with key %v", b, key)
	}
	return key
}

func (o *owner) register() rdma.Remote {
	o.t.Helper()
	b, _ := o.ask("register")
	var remote rdma.Remote
	if err := remote.UnmarshalBinary(b); err != nil {
		o.t.Fatal(err)
	}
	return remote
}

// read is a read of all of local, to its end.
func (o *owner) read(key cmsg.Key, local rdma.Slice) error {
	o.t.Helper()
	return do(o.t, o.conn.StartRead, &rdma.Operation{Peer: o.address, Key: key, Local: []rdma.Slice{local}})
}

func TestTwoMachinesReadWriteRevokeAndRecover(t *testing.T) {
	o := newOwner(t)
	local := allocate(t, 1<<20)
	want := make([]byte, 1<<20)
	fillFast(want, 20)

	key := o.offer("offer")
	if err := o.read(key, local.All()); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(local.Bytes(), want) {
		t.Error("a read brought something else")
	}
	fillFast(local.Slice(100, 1000).Bytes(), 21)
	if err := do(t, o.conn.StartWrite, &rdma.Operation{Peer: o.address, Key: key, Offset: 100, Local: []rdma.Slice{local.Slice(100, 1000)}}); err != nil {
		t.Fatal(err)
	}
	copy(want[100:], local.Slice(100, 1000).Bytes())
	clear(local.Bytes())
	if err := o.read(key, local.All()); err != nil || !bytes.Equal(local.Bytes(), want) {
		t.Errorf("what was written is not read, %v", err)
	}

	if err := o.read(key^0x5500, local.Slice(0, 4096)); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("a wrong key: %v", err)
	}
	retry(t, func() error { return o.read(key, local.Slice(0, 4096)) })

	once := o.offer("offer once")
	if err := o.read(once, local.Slice(0, 4096)); err != nil {
		t.Errorf("a key for use once: %v", err)
	}
	o.ask("flush") // its message has arrived by now
	if err := o.read(once, local.Slice(0, 4096)); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("used twice: %v", err)
	}
	o.ask("hello")

	key = o.offer("offer")
	if err := o.read(key, local.Slice(0, 4096)); err != nil {
		t.Error(err)
	}
	o.ask("revoke")
	if err := o.read(key, local.Slice(0, 4096)); !errors.Is(err, rdma.ErrRemoteAccess) {
		t.Errorf("a revoked key: %v", err)
	}
	o.ask("hello")
}

// Each value is written to a random place of the other machine, read back into
// another, and compared.
func TestTwoMachinesTenThousandOperationsOfRandomSizes(t *testing.T) {
	n := 10_000
	if testing.Short() {
		n = 200
	}
	o := newOwner(t)
	remote := o.register()
	const depth = 4
	const slot = rdma.MaxOperation
	ctx := within(t, 30*time.Minute)
	local := allocate(t, 2*depth*slot)
	table := crc64.MakeTable(crc64.ECMA)
	rng := rand.New(rand.NewPCG(2, 3))
	var ops [depth]rdma.Operation
	var sums [depth]uint64
	var moved int64
	for range n / 2 / depth {
		// All of a round at a time: writes, and then reads.
		for i := range ops {
			size := min(int(math.Exp2(rng.Float64()*20)), slot)
			from := local.Slice(2*i*slot+rng.IntN(slot-size+1), size)
			fill(from.Slice(0, min(size, 64)).Bytes(), rng.Uint64())
			sums[i] = crc64.Checksum(from.Bytes(), table)
			op := &ops[i]
			op.Peer, op.Key, op.Offset = o.address, remote.Keys[i], uint64(rng.IntN(slot-size+1))
			op.Local, op.Silent = append(op.Local[:0], from), true
			if err := o.conn.StartWrite(ctx, op); err != nil {
				t.Fatal(err)
			}
			moved += 2 * int64(size)
		}
		for i := range ops {
			op := &ops[i]
			if err := op.Wait(ctx); err != nil {
				t.Fatal(err)
			}
			size := op.Local[0].Len()
			op.Local[0] = local.Slice((2*i+1)*slot+rng.IntN(slot-size+1), size)
			clear(op.Local[0].Bytes())
			if err := o.conn.StartRead(ctx, op); err != nil {
				t.Fatal(err)
			}
		}
		for i := range ops {
			if err := ops[i].Wait(ctx); err != nil {
				t.Fatal(err)
			}
			if sum := crc64.Checksum(ops[i].Local[0].Bytes(), table); sum != sums[i] {
				t.Fatalf("%d bytes: checksum %x, want %x", ops[i].Local[0].Len(), sum, sums[i])
			}
		}
	}
	t.Logf("%d operations moved %d MiB", n, moved>>20)
}

func TestTwoMachinesTransferInPieces(t *testing.T) {
	size := ownerSize
	if testing.Short() {
		size = 8 << 20
	}
	o := newOwner(t)
	remote := o.register()
	ctx := within(t, 30*time.Minute)
	local := allocate(t, size)
	fillFast(local.Bytes(), 22)
	want := crc64.Checksum(local.Bytes(), crc64.MakeTable(crc64.ECMA))
	transfer := rdma.Transfer{Peer: o.address, Remote: remote, Local: []rdma.Slice{local.All()}}
	began := time.Now()
	if err := o.conn.Write(ctx, &transfer); err != nil {
		t.Fatal(err)
	}
	clear(local.Bytes())
	if err := o.conn.Read(ctx, &transfer); err != nil {
		t.Fatal(err)
	}
	if got := crc64.Checksum(local.Bytes(), crc64.MakeTable(crc64.ECMA)); got != want {
		t.Errorf("checksum %x, want %x", got, want)
	}
	t.Logf("%d MiB each way in %v", size>>20, time.Since(began).Round(time.Second))
}

// startMany starts operations, more than the device takes at a time.
func (o *owner) startMany(key cmsg.Key, local *rdma.Region) []rdma.Operation {
	o.t.Helper()
	ops := make([]rdma.Operation, 40)
	for i := range ops {
		ops[i] = rdma.Operation{Peer: o.address, Key: key, Local: []rdma.Slice{local.All()}}
		if err := o.conn.StartRead(o.t.Context(), &ops[i]); err != nil {
			o.t.Fatal(err)
		}
	}
	return ops
}

// A machine that dies and stays dead: nobody is told, the memory is kept, and Cancel ends all.
func TestTwoMachinesAPeerThatStaysDeadIsCanceled(t *testing.T) {
	o := newOwner(t)
	key := o.offer("offer")
	local := allocate(t, 1<<20)
	mine := rdma.Registration{Memory: local.All()}
	if err := o.conn.Offer(t.Context(), &mine, []byte("mine"), o.address); err != nil {
		t.Fatal(err)
	}
	counted, listed := regions(t)
	ops := o.startMany(key, local)
	if err := ops[0].Wait(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	o.machine.Kill()
	last := &ops[len(ops)-1]
	if err := last.Wait(within(t, 3*time.Second)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("the last operation: %v", err)
	}
	if err := local.Close(within(t, time.Second)); !errors.Is(err, rdma.ErrInUse) {
		t.Errorf("closing the region: %v", err)
	}
	if local.Bytes() == nil {
		t.Error("the memory is gone")
	}
	if err := o.conn.Cancel(within(t, patience), o.address); err != nil {
		t.Fatal(err)
	}
	o.account(ops)
	if err := local.Close(within(t, patience)); err != nil {
		t.Error(err)
	}
	if err := o.conn.FlushRegions(); err != nil {
		t.Error(err)
	}
	if c, l := regions(t); c > counted || l > listed {
		t.Errorf("the kernel counts %d regions and lists %d, and before %d and %d", c, l, counted, listed)
	}
}

// account checks that each operation has ended, and logs how.
func (o *owner) account(ops []rdma.Operation) {
	o.t.Helper()
	ends := make(map[string]int)
	for i := range ops {
		err := ops[i].Wait(within(o.t, 2*patience))
		switch {
		case err == nil:
			ends["done"]++
		case errors.Is(err, rdma.ErrCanceled):
			ends["canceled"]++
		case errors.Is(err, rdma.ErrDropped):
			ends["dropped"]++
		case errors.Is(err, rdma.ErrFailed):
			ends["failed"]++
		default:
			o.t.Errorf("operation %d: %v", i, err)
		}
	}
	o.t.Logf("of %d operations: %v", len(ops), ends)
	if n := o.conn.Outstanding(); n != 0 {
		o.t.Errorf("%d operations are outstanding", n)
	}
}

// A machine that dies and comes back: the kernel tells of each operation once it is
// connected again.
func TestTwoMachinesAPeerThatComesBackEndsWhatWasUnderWay(t *testing.T) {
	o := newOwner(t)
	key := o.offer("offer")
	local := allocate(t, 1<<20)
	ops := o.startMany(key, local)
	if err := ops[0].Wait(within(t, patience)); err != nil {
		t.Fatal(err)
	}
	o.machine.Kill()
	o.machine.Boot()
	o.start()
	for ready := false; !ready; {
		// The connection to a machine that was dead takes a while.
		b, _ := o.ask("hello")
		ready = strings.HasPrefix(string(b), "hello")
	}
	o.account(ops)
	key = o.offer("offer")
	retry(t, func() error { return o.read(key, local.All()) })
}
