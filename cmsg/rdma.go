package cmsg

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/internal/abi"
)

// Key is what one host gives another so that it can reach a memory region:
// rds_rdma_cookie_t. It means something only to the kernel that made it and is
// passed on as it is; 0 is never a key.
type Key uint64

// RKey returns the region's RDMA key, the low 32 bits.
func (k Key) RKey() uint32 { return uint32(k) }

// Offset returns where in its first page the region starts, the high 32 bits.
// The kernel adds it to the remote address of each operation
// (rds_cmsg_rdma_args in net/rds/rdma.c).
func (k Key) Offset() uint32 { return uint32(k >> 32) }

// String returns the key as offset and RDMA key in hex, such as "100:203".
func (k Key) String() string {
	return strconv.FormatUint(uint64(k.Offset()), 16) + ":" + strconv.FormatUint(uint64(k.RKey()), 16)
}

// Flags are the RDS_RDMA_* bits. The kernel ignores those that it does not
// know, so the kernel cannot be asked what it supports by setting one.
type Flags uint64

const (
	// FlagReadWrite makes RDMAArgs a write, from local memory to the remote
	// region; without it they are a read. It changes nothing for RDMAMap: every
	// region can be read and written.
	FlagReadWrite Flags = abi.RDS_RDMA_READWRITE
	// FlagFence holds back the message that follows an RDMA read until the
	// read is done.
	FlagFence Flags = abi.RDS_RDMA_FENCE
	// FlagInvalidate ends remote access the moment the region is freed, not
	// some time later.
	FlagInvalidate Flags = abi.RDS_RDMA_INVALIDATE
	// FlagUseOnce frees the region when the message of an operation on it
	// arrives.
	FlagUseOnce Flags = abi.RDS_RDMA_USE_ONCE
	// FlagNotifyMe asks for an RDMAStatus when the operation ends, well or
	// not. Without it failures are as good as silent.
	FlagNotifyMe Flags = abi.RDS_RDMA_NOTIFY_ME
	// FlagSilent sends no message along with the operation if the payload is
	// empty: the remote program sees nothing. The status then comes only
	// after a later operation, see rdma.Operation.
	FlagSilent Flags = abi.RDS_RDMA_SILENT
	// FlagRemoteComplete, UEK only, asks for the status when the data is
	// available on the remote side.
	FlagRemoteComplete Flags = abi.UEK_RDS_RDMA_REMOTE_COMPLETE
	// FlagSendNotifyMe, UEK only, asks for the status of an AsyncSend.
	FlagSendNotifyMe Flags = abi.UEK_RDS_SEND_NOTIFY_ME
)

// String returns the kernel's names of the bits, such as
// "READWRITE|NOTIFY_ME", with those unknown as one number, and "0" for none.
func (f Flags) String() string {
	if f == 0 {
		return "0"
	}
	var s []string
	for _, n := range []struct {
		bit  Flags
		name string
	}{
		{FlagReadWrite, "READWRITE"},
		{FlagFence, "FENCE"},
		{FlagInvalidate, "INVALIDATE"},
		{FlagUseOnce, "USE_ONCE"},
		{FlagNotifyMe, "NOTIFY_ME"},
		{FlagSilent, "SILENT"},
		{FlagRemoteComplete, "REMOTE_COMPLETE"},
		{FlagSendNotifyMe, "SEND_NOTIFY_ME"},
	} {
		if f&n.bit != 0 {
			s = append(s, n.name)
			f &^= n.bit
		}
	}
	if f != 0 {
		s = append(s, fmt.Sprintf("%#x", uint64(f)))
	}
	return strings.Join(s, "|")
}

// Iovec is a range of memory, struct rds_iovec: local memory by its user
// address, or a part of a remote region by its offset in it. An address is a
// mere number here. It keeps no memory alive and does not follow a Go stack
// that moves: use memory that the garbage collector does not own.
type Iovec struct {
	Addr uint64
	Len  uint64
}

// SizeofIovec is the size of one element of the list that RDMAArgs.LocalAddr
// points to.
const SizeofIovec = abi.SizeofIovec

// AppendIovec appends the 16 bytes of an element of the list that
// RDMAArgs.LocalAddr points to. Unlike the other methods it writes no header.
func (e Encoder) AppendIovec(b []byte, v Iovec) []byte {
	return abi.Iovec{Addr: v.Addr, Bytes: v.Len}.Append(b, e.layout)
}

// RDMAArgs is struct rds_rdma_args: it makes sendmsg start an RDMA read or
// write. The message itself, if only an empty one, follows the operation on
// its way.
type RDMAArgs struct {
	Key    Key   // of the remote region, as its owner sent it
	Remote Iovec // range of the remote region: offset and at most 1 MiB

	// LocalAddr is the user address of LocalCount elements of 16 bytes, see
	// AppendIovec. The kernel reads the list during sendmsg and the memory that
	// it names until the operation has ended. Together the elements must not be
	// longer than Remote.
	LocalAddr  uint64
	LocalCount uint64 // 1 to 1024

	Flags Flags
	Token uint64 // comes back in the RDMAStatus
}

// AppendRDMAArgs appends an RDS_CMSG_RDMA_ARGS.
func (e Encoder) AppendRDMAArgs(b []byte, a RDMAArgs) []byte {
	b = e.begin(b, abi.RDS_CMSG_RDMA_ARGS, abi.SizeofRDMAArgs)
	b = e.layout.AppendUint64(b, uint64(a.Key))
	b = e.AppendIovec(b, a.Remote)
	b = e.layout.AppendUint64(b, a.LocalAddr)
	b = e.layout.AppendUint64(b, a.LocalCount)
	b = e.layout.AppendUint64(b, uint64(a.Flags))
	return e.layout.AppendUint64(b, a.Token)
}

// RDMAArgs decodes an RDS_CMSG_RDMA_ARGS.
func (m Message) RDMAArgs() (RDMAArgs, error) {
	b, err := m.data(KindRDMAArgs, abi.SizeofRDMAArgs)
	if err != nil {
		return RDMAArgs{}, err
	}
	remote := abi.ParseIovec(b[8:], m.layout)
	return RDMAArgs{
		Key:        Key(m.layout.Uint64(b)),
		Remote:     Iovec{Addr: remote.Addr, Len: remote.Bytes},
		LocalAddr:  m.layout.Uint64(b[24:]),
		LocalCount: m.layout.Uint64(b[32:]),
		Flags:      Flags(m.layout.Uint64(b[40:])),
		Token:      m.layout.Uint64(b[48:]),
	}, nil
}

// AppendRDMADest appends an RDS_CMSG_RDMA_DEST, which gives the receiver of
// the message the key of a region of the sending socket.
func (e Encoder) AppendRDMADest(b []byte, k Key) []byte {
	b = e.begin(b, abi.RDS_CMSG_RDMA_DEST, abi.SizeofCookie)
	return e.layout.AppendUint64(b, uint64(k))
}

// RDMADest decodes an RDS_CMSG_RDMA_DEST: the key that the sender of the
// message gave along, by RDMADest or RDMAMap.
func (m Message) RDMADest() (Key, error) {
	b, err := m.data(KindRDMADest, abi.SizeofCookie)
	if err != nil {
		return 0, err
	}
	return Key(m.layout.Uint64(b)), nil
}

// RDMAMap is struct rds_get_mr_args in a control message: it makes sendmsg
// register memory and give the receiver of the message its key. The whole
// pages that hold Vec become reachable for the holder of the key.
type RDMAMap struct {
	Vec     Iovec  // user memory, at most 1 MiB
	KeyAddr uint64 // user address where the kernel writes the Key, 8 bytes; or 0
	Flags   Flags  // FlagUseOnce, FlagInvalidate
}

// AppendRDMAMap appends an RDS_CMSG_RDMA_MAP.
func (e Encoder) AppendRDMAMap(b []byte, a RDMAMap) []byte {
	b = e.begin(b, abi.RDS_CMSG_RDMA_MAP, abi.SizeofGetMRArgs)
	return abi.GetMRArgs{
		Vec:        abi.Iovec{Addr: a.Vec.Addr, Bytes: a.Vec.Len},
		CookieAddr: a.KeyAddr,
		Flags:      uint64(a.Flags),
	}.Append(b, e.layout)
}

// RDMAMap decodes an RDS_CMSG_RDMA_MAP.
func (m Message) RDMAMap() (RDMAMap, error) {
	b, err := m.data(KindRDMAMap, abi.SizeofGetMRArgs)
	if err != nil {
		return RDMAMap{}, err
	}
	a := abi.ParseGetMRArgs(b, m.layout)
	return RDMAMap{
		Vec:     Iovec{Addr: a.Vec.Addr, Len: a.Vec.Bytes},
		KeyAddr: a.CookieAddr,
		Flags:   Flags(a.Flags),
	}, nil
}

// Status is how an operation ended: the RDS_RDMA_* status values, which UEK
// calls RDS_RDMA_SEND_*.
type Status int32

const (
	StatusSuccess     Status = abi.RDS_RDMA_SUCCESS
	StatusRemoteError Status = abi.RDS_RDMA_REMOTE_ERROR // bad key, offset or rights
	StatusCanceled    Status = abi.RDS_RDMA_CANCELED     // by RDS_CANCEL_SENT_TO or close
	StatusDropped     Status = abi.RDS_RDMA_DROPPED      // the connection broke: outcome unknown, perhaps partial
	StatusOtherError  Status = abi.RDS_RDMA_OTHER_ERROR
)

// String returns "success", "remote error", "canceled", "dropped", "other
// error", or "status N".
func (s Status) String() string {
	switch s {
	case StatusSuccess:
		return "success"
	case StatusRemoteError:
		return "remote error"
	case StatusCanceled:
		return "canceled"
	case StatusDropped:
		return "dropped"
	case StatusOtherError:
		return "other error"
	}
	return "status " + strconv.Itoa(int(s))
}

// RDMAStatus is struct rds_rdma_notify: an operation that asked for it with
// FlagNotifyMe has ended.
//
// One recvmsg brings as many as fit into the control buffer, on mainline the
// latest first (rds_notify_queue_get in net/rds/recv.c): go by the Token only.
type RDMAStatus struct {
	Token  uint64 // of the RDMAArgs, Atomic or AsyncSend
	Status Status
}

// AppendRDMAStatus appends an RDS_CMSG_RDMA_STATUS, which only the kernel
// sends.
func (e Encoder) AppendRDMAStatus(b []byte, s RDMAStatus) []byte {
	pad := 0
	if e.layout.Uint64Align() == 8 {
		pad = 4
	}
	b = e.begin(b, abi.RDS_CMSG_RDMA_STATUS, abi.SizeofRDMANotify+pad)
	b = e.layout.AppendUint64(b, s.Token)
	b = e.layout.AppendUint32(b, uint32(s.Status))
	return append(b, make([]byte, pad)...)
}

// RDMAStatus decodes an RDS_CMSG_RDMA_STATUS.
func (m Message) RDMAStatus() (RDMAStatus, error) {
	b, err := m.data(KindRDMAStatus, abi.SizeofRDMANotify)
	if err != nil {
		return RDMAStatus{}, err
	}
	return RDMAStatus{
		Token:  m.layout.Uint64(b),
		Status: Status(m.layout.Uint32(b[8:])),
	}, nil
}
