package rdma_test

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/sys"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

// What the kernel itself does, which rds-rdma(7) tells.

// A rawSocket is a socket without any of this module's help.
type rawSocket struct {
	t    testing.TB
	sock *sys.Socket
	addr netip.AddrPort
}

func newRaw(t testing.TB, n int) *rawSocket {
	t.Helper()
	sock, err := sys.NewSocket(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { sock.Close() })
	if err := sock.SetsockoptInt(abi.SOL_RDS, abi.SO_RDS_TRANSPORT, int(abi.RDS_TRANS_IB)); err != nil {
		t.Fatal(err)
	}
	if err := sock.Bind(netip.AddrPortFrom(labtest.HCA(t, n).IPv4(), 0), 0); err != nil {
		t.Fatal(err)
	}
	addr, _, err := sock.LocalName()
	if err != nil {
		t.Fatal(err)
	}
	return &rawSocket{t, sock, addr}
}

// send makes one attempt.
func (s *rawSocket) send(to netip.AddrPort, data, oob []byte) (errno syscall.Errno) {
	var m sys.Msg
	m.SetName(to, 0)
	m.SetData(data)
	m.SetControl(oob)
	s.sock.Raw().Control(func(fd uintptr) { _, errno = m.Send(fd, 0) })
	return errno
}

// receive waits for what the kernel brings next: data, control messages, and
// whether it is a message.
func (s *rawSocket) receive(flags, room int) (oob []byte, isMessage bool) {
	s.t.Helper()
	var m sys.Msg
	oob = make([]byte, room)
	deadline := time.Now().Add(patience)
	for {
		m.SetData(make([]byte, 100))
		m.SetControl(oob)
		var errno syscall.Errno
		s.sock.Raw().Control(func(fd uintptr) { _, errno = m.Recv(fd, flags) })
		switch {
		case errno == 0:
			return oob[:m.ControlLen()], m.HasName()
		case errno != syscall.EAGAIN || time.Now().After(deadline):
			s.t.Fatal(errno)
		}
		time.Sleep(time.Millisecond)
	}
}

func statuses(t testing.TB, oob []byte) (ss []cmsg.RDMAStatus) {
	t.Helper()
	for it := cmsg.Parse(cmsg.Mainline, oob); it.Next(); {
		if s, err := it.Message().RDMAStatus(); err == nil {
			ss = append(ss, s)
		}
	}
	return ss
}

func TestTheKernelChecksAnOperation(t *testing.T) {
	owner, _ := pair(t)
	s := newRaw(t, 2)
	offered, local := allocate(t, 1<<20), allocate(t, 1<<20)
	reg := rdma.Registration{Memory: offered.All()}
	if err := owner.Register(t.Context(), &reg, s.addr); err != nil {
		t.Fatal(err)
	}
	var e cmsg.Encoder
	list := allocate(t, 1<<16)
	readOnly, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(readOnly)
	mine, listed := sys.Address(local.Bytes()), sys.Address(list.Bytes())
	for i, test := range []struct {
		name   string
		local  []cmsg.Iovec
		list   uint64
		count  uint64
		remote uint64
		flags  cmsg.Flags
		want   syscall.Errno
	}{
		{"as much local as remote memory", []cmsg.Iovec{{Addr: mine, Len: 100}}, listed, 1, 100, 0, 0},
		{"less local than remote memory", []cmsg.Iovec{{Addr: mine, Len: 100}}, listed, 1, 200, 0, 0},
		{"more local than remote memory", []cmsg.Iovec{{Addr: mine, Len: 100}}, listed, 1, 99, 0, syscall.EINVAL},
		{"1 MiB", []cmsg.Iovec{{Addr: mine, Len: 1 << 20}}, listed, 1, 1 << 20, 0, 0},
		{"over 1 MiB of remote memory", []cmsg.Iovec{{Addr: mine, Len: 100}}, listed, 1, 1<<20 + 1, 0, syscall.EMSGSIZE},
		{"no local memory", nil, listed, 0, 100, 0, syscall.EINVAL},
		{"no bytes of local memory", []cmsg.Iovec{{Addr: mine}}, listed, 1, 100, 0, syscall.EINVAL},
		{"1025 pieces of local memory", nil, listed, 1025, 100, 0, syscall.EMSGSIZE},
		{"a list that is not there", nil, 4096, 1, 100, 0, syscall.EFAULT},
		{"local memory that is not there", []cmsg.Iovec{{Addr: 4096, Len: 100}}, listed, 1, 100, 0, syscall.EFAULT},
		{"a read into what cannot be written", []cmsg.Iovec{{Addr: sys.Address(readOnly), Len: 100}}, listed, 1, 100, 0, syscall.EFAULT},
		{"a write from what cannot be written", []cmsg.Iovec{{Addr: sys.Address(readOnly), Len: 100}}, listed, 1, 100, cmsg.FlagReadWrite, 0},
		{"unknown flags", []cmsg.Iovec{{Addr: mine, Len: 100}}, listed, 1, 100, 1 << 50, 0},
	} {
		b := list.Bytes()[:0]
		for _, v := range test.local {
			b = e.AppendIovec(b, v)
		}
		token := uint64(1)<<63 | uint64(i)
		errno := s.send(addr(owner), nil, e.AppendRDMAArgs(nil, cmsg.RDMAArgs{
			Key: reg.Key(), Remote: cmsg.Iovec{Len: test.remote}, LocalAddr: test.list, LocalCount: test.count,
			Flags: test.flags | cmsg.FlagNotifyMe, Token: token,
		}))
		if errno != test.want {
			t.Errorf("%s: %v, want %v", test.name, errno, test.want)
		}
		if errno == 0 {
			oob, isMessage := s.receive(0, 512)
			if ss := statuses(t, oob); isMessage || len(ss) != 1 || ss[0].Token != token || ss[0].Status != cmsg.StatusSuccess {
				t.Errorf("%s: %+v, a message: %t", test.name, ss, isMessage)
			}
		}
	}
}

// Statuses come without a message, many at once, the last first, and a look takes them.
func TestStatusesComeAloneAndTheLastFirst(t *testing.T) {
	owner, _ := pair(t)
	s := newRaw(t, 2)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All()}
	if err := owner.Register(t.Context(), &reg, s.addr); err != nil {
		t.Fatal(err)
	}
	var e cmsg.Encoder
	list := allocate(t, 4096)
	e.AppendIovec(list.Bytes()[:0], cmsg.Iovec{Addr: sys.Address(local.Bytes()), Len: 4096})
	start := func(token uint64) {
		t.Helper()
		if errno := s.send(addr(owner), []byte("op"), e.AppendRDMAArgs(nil, cmsg.RDMAArgs{
			Key: reg.Key(), Remote: cmsg.Iovec{Len: 4096}, LocalAddr: sys.Address(list.Bytes()), LocalCount: 1,
			Flags: cmsg.FlagNotifyMe, Token: token,
		})); errno != 0 {
			t.Fatal(errno)
		}
	}
	b := make([]byte, 10)
	for token := range uint64(4) {
		start(token)
		// It is over before the owner has its message, and reported soon after.
		if _, _, _, err := owner.Receive(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(time.Second)
	// A message waits as well: the statuses come before it.
	if _, err := owner.Socket().WriteToAddrPort([]byte("message"), s.addr); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
	oob, isMessage := s.receive(sys.MSG_PEEK, 3*cmsg.KindRDMAStatus.Space(cmsg.Mainline))
	var tokens []uint64
	for _, st := range statuses(t, oob) {
		tokens = append(tokens, st.Token)
	}
	if isMessage || !slices.Equal(tokens, []uint64{2, 1, 0}) {
		t.Errorf("a look with room for 3 brings statuses %v, a message: %t", tokens, isMessage)
	}
	// Without room they are lost.
	if oob, isMessage := s.receive(0, 0); isMessage || len(oob) != 0 {
		t.Errorf("without room: %x, a message: %t", oob, isMessage)
	}
	if oob, isMessage := s.receive(0, 512); !isMessage || len(statuses(t, oob)) != 0 {
		t.Errorf("after all: %+v, a message: %t", statuses(t, oob), isMessage)
	}
}

func TestTheKernelChecksARegistration(t *testing.T) {
	owner, peer := pair(t)
	reconnect(t, owner, peer)
	s := newRaw(t, 1)
	memory := allocate(t, 3<<20)
	readOnly, err := syscall.Mmap(-1, 0, 4096, syscall.PROT_READ, syscall.MAP_PRIVATE|syscall.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(readOnly)
	cell := allocate(t, 8)
	mine := sys.Address(memory.Bytes())
	var e cmsg.Encoder
	for _, test := range []struct {
		name string
		vec  cmsg.Iovec
		cell uint64
		want syscall.Errno
	}{
		{"1 byte", cmsg.Iovec{Addr: mine, Len: 1}, sys.Address(cell.Bytes()), 0},
		{"1 MiB", cmsg.Iovec{Addr: mine, Len: 1 << 20}, sys.Address(cell.Bytes()), 0},
		{"1 MiB from within a page", cmsg.Iovec{Addr: mine + 100, Len: 1 << 20}, sys.Address(cell.Bytes()), 0},
		{"258 pages", cmsg.Iovec{Addr: mine, Len: 1<<20 + 4097}, sys.Address(cell.Bytes()), syscall.EMSGSIZE},
		{"no bytes", cmsg.Iovec{Addr: mine}, sys.Address(cell.Bytes()), syscall.EINVAL},
		{"what cannot be written", cmsg.Iovec{Addr: sys.Address(readOnly), Len: 1}, sys.Address(cell.Bytes()), syscall.EFAULT},
		{"what is not there", cmsg.Iovec{Addr: 4096, Len: 1}, sys.Address(cell.Bytes()), syscall.EFAULT},
		{"no place for the key", cmsg.Iovec{Addr: mine, Len: 1}, 0, 0},
	} {
		if errno := s.send(addr(peer), nil, e.AppendRDMAMap(nil, cmsg.RDMAMap{Vec: test.vec, KeyAddr: test.cell})); errno != test.want {
			t.Errorf("%s: %v, want %v", test.name, errno, test.want)
		}
		// Without a message, mainline registers nothing.
		args := abi.GetMRArgs{Vec: abi.Iovec{Addr: test.vec.Addr, Bytes: test.vec.Len}, CookieAddr: test.cell}
		want := test.want
		if want == 0 {
			want = syscall.EOPNOTSUPP
		}
		for option, b := range map[int][]byte{
			abi.RDS_GET_MR:          args.Append(nil, abi.Layout{}),
			abi.RDS_GET_MR_FOR_DEST: abi.GetMRForDestArgs{Dest: addr(peer), GetMRArgs: args}.Append(nil, abi.Layout{}),
		} {
			if err := s.sock.Setsockopt(abi.SOL_RDS, option, b); !errors.Is(err, want) {
				t.Errorf("%s, option %d: %v, want %v", test.name, option, err, want)
			}
		}
	}
	// Keys are a socket's own.
	reg := rdma.Registration{Memory: memory.Slice(0, 4096)}
	if err := owner.Register(t.Context(), &reg, addr(peer)); err != nil {
		t.Fatal(err)
	}
	key := reg.Key()
	if errno := s.send(addr(peer), nil, e.AppendRDMADest(nil, key)); errno != syscall.EINVAL {
		t.Errorf("the key of another socket, to give away: %v", errno)
	}
	if err := s.sock.Setsockopt(abi.SOL_RDS, abi.RDS_FREE_MR, abi.FreeMRArgs{Cookie: uint64(key)}.Append(nil, abi.Layout{})); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("the key of another socket, to free: %v", err)
	}
	if err := s.sock.Setsockopt(abi.SOL_RDS, abi.RDS_FREE_MR, make([]byte, 16)); err != nil {
		t.Errorf("key 0: %v", err)
	}
}

func TestTheKernelRegistersOnlyOnAConnection(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	s := newRaw(t, 1)
	memory := allocate(t, 4096)
	var e cmsg.Encoder
	oob := e.AppendRDMAMap(nil, cmsg.RDMAMap{Vec: cmsg.Iovec{Addr: sys.Address(memory.Bytes()), Len: 4096}})
	nowhere := netip.AddrPortFrom(netip.MustParseAddr("10.8.0.77"), 4000)
	if errno := s.send(nowhere, []byte("x"), oob); errno != syscall.EAGAIN {
		t.Errorf("the error is %v, want EAGAIN", errno)
	}
}

// A registration whose message is not sent is undone.
func TestAFailedSendRegistersNothing(t *testing.T) {
	owner, peer := pair(t)
	reconnect(t, owner, peer)
	memory := allocate(t, 4096)
	s := newRaw(t, 1)
	if err := s.sock.SetsockoptInt(sys.SOL_SOCKET, sys.SO_SNDBUF, 4096); err != nil {
		t.Fatal(err)
	}
	nowhere := netip.AddrPortFrom(netip.MustParseAddr("10.8.0.79"), 4000)
	for s.send(nowhere, make([]byte, 1000), nil) == 0 {
	}
	var e cmsg.Encoder
	oob := e.AppendRDMAMap(nil, cmsg.RDMAMap{Vec: cmsg.Iovec{Addr: sys.Address(memory.Bytes()), Len: 4096}, Flags: cmsg.FlagInvalidate})
	try := func() {
		if errno := s.send(addr(peer), []byte("x"), oob); errno != syscall.EAGAIN {
			t.Fatalf("the send buffer is full: %v", errno)
		}
	}
	try()
	before := counters(t)
	counted, listed := regions(t)
	for range 1000 {
		try()
	}
	if used := counters(t)["ib_rdma_mr_8k_used"] - before["ib_rdma_mr_8k_used"]; used != 1000 {
		t.Errorf("%d registrations were made", used)
	}
	if c, l := regions(t); c != counted || l != listed {
		t.Errorf("the kernel counts %d regions and lists %d, and before %d and %d", c, l, counted, listed)
	}
}

// What RDS_RDMA_SILENT does, which Operation.Silent does not use: the kernel
// reports such operations, and lets go of them, only after a later one.
func TestTheKernelsSilentFlagReportsOnlyAfterALaterMessage(t *testing.T) {
	owner, peer := pair(t)
	ctx := within(t, patience)
	offered, local := allocate(t, 4096), allocate(t, 4096)
	reg := rdma.Registration{Memory: offered.All()}
	key := offer(t, owner, peer, &reg)
	fill(local.Bytes(), 6)
	if err := peer.Socket().Flush(ctx); err != nil {
		t.Fatal(err)
	}
	list := allocate(t, 4096) // names the local memory
	var e cmsg.Encoder
	e.AppendIovec(list.Bytes()[:0], cmsg.Iovec{Addr: sys.Address(local.Bytes()), Len: 4096})
	reports := make([]rdssock.Completion, 5)
	for i := range reports {
		oob := e.AppendRDMAArgs(nil, cmsg.RDMAArgs{
			Key: key, Remote: cmsg.Iovec{Len: 4096}, LocalAddr: sys.Address(list.Bytes()), LocalCount: 1,
			Flags: cmsg.FlagReadWrite | cmsg.FlagNotifyMe | cmsg.FlagSilent,
			Token: peer.Socket().ExpectCompletion(&reports[i], nil),
		})
		if _, _, err := peer.Socket().WriteMsgContext(ctx, nil, oob, addr(owner)); err != nil {
			t.Fatal(err)
		}
	}
	if err := reports[0].Wait(within(t, 300*time.Millisecond)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a silent operation was reported: %v", err)
	}
	for ctx.Err() == nil && !bytes.Equal(local.Bytes(), offered.Bytes()) {
		time.Sleep(10 * time.Millisecond)
	}
	if ctx.Err() != nil {
		t.Error("it has not happened")
	}
	if q, err := peer.Socket().Pending(); err != nil || q.Messages != len(reports) {
		t.Errorf("the kernel keeps %d of %d silent operations; %v", q.Messages, len(reports), err)
	}
	op := rdma.Operation{Peer: addr(owner), Key: key, Local: []rdma.Slice{local.All()}}
	if err := do(t, peer.StartWrite, &op); err != nil {
		t.Fatal(err)
	}
	for i := range reports {
		if err := reports[i].Wait(ctx); err != nil {
			t.Errorf("after a later operation: %v", err)
		}
	}
}
