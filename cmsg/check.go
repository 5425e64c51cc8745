package cmsg

import (
	"math"

	"github.com/rdskit/rdskit/internal/abi"
)

// Check tells what is wrong with the control messages of a send, where the
// kernel answers sendmsg with a bare EINVAL, EMSGSIZE or EFAULT. It returns a
// [*ParseError] that names the first rule broken, nil if there is none. It
// knows the rules that the control buffer alone decides:
//
//   - lengths are sound, no message is shorter than its kind needs; bytes at the
//     end that are too few for a header are ignored;
//   - messages at level SOL_RDS are of a kind that can be sent; those of other
//     levels are ignored;
//   - RDMAArgs and Atomic do not go with RDMADest, RDMAMap, AsyncSend and
//     ZerocopyCookie;
//   - at most one RDMAArgs, one Atomic, and one of RDMADest and RDMAMap; one
//     RDMAArgs may go with one Atomic;
//   - RDMAArgs has 1 to 1024 local elements and at most 1 MiB of remote memory,
//     RDMAMap some memory; the local address of an Atomic is a multiple of 8.
//
// It does not know the flags of the call: a ZerocopyCookie without
// MSG_ZEROCOPY, and MSG_ZEROCOPY without a ZerocopyCookie, are EINVAL too.
//
// Sources: rds_rm_size, rds_rdma_bytes and rds_cmsg_send in net/rds/send.c and
// the functions of net/rds/rdma.c that they call.
func Check(d Dialect, oob []byte) error {
	it := Parse(d, oob)
	return it.check()
}

func (it *Iterator) check() error {
	var n [KindTimestamp + 1]int // how many of each kind
	for it.Next() {
		m := it.Message()
		if m.Level != abi.SOL_RDS {
			continue
		}
		if err := m.checkAlone(); err != nil {
			return err
		}
		n[m.kind]++
		operations := n[KindRDMAArgs] + n[KindAtomic]
		regions := n[KindRDMADest] + n[KindRDMAMap]
		switch {
		case n[KindRDMAArgs] > 1 || n[KindAtomic] > 1:
			return m.errorf(ErrRefused, "a second one in the message")
		case regions > 1:
			return m.errorf(ErrRefused, "a second RDMA dest or RDMA map in the message")
		case operations > 0 && regions+n[KindAsyncSend]+n[KindZerocopyCookie] > 0:
			return m.errorf(ErrRefused, "RDMA args and atomic do not go with RDMA dest, RDMA map, async send and zerocopy cookie")
		}
	}
	if len(it.oob)-it.next < headerSize(it.layout) {
		return nil // the kernel does not look at what is too short for a header
	}
	return it.Err()
}

// checkAlone tells what is wrong with a message at level SOL_RDS whatever else
// is sent with it.
func (m Message) checkAlone() error {
	switch m.kind {
	case KindRDMAArgs:
		a, err := m.RDMAArgs()
		switch {
		case err != nil:
			return err
		case a.LocalCount < 1 || a.LocalCount > abi.UIO_MAXIOV:
			return m.errorf(ErrRefused, "%d local elements, 1 to %d may be", a.LocalCount, abi.UIO_MAXIOV)
		case a.Remote.Len > abi.RDS_MAX_MSG_SIZE:
			return m.errorf(ErrRefused, "%d bytes of remote memory, at most %d may be", a.Remote.Len, abi.RDS_MAX_MSG_SIZE)
		}
		return nil
	case KindAtomic:
		a, err := m.Atomic()
		if err == nil && a.LocalAddr%8 != 0 {
			err = m.errorf(ErrRefused, "local address %#x is no multiple of 8", a.LocalAddr)
		}
		return err
	case KindRDMADest:
		_, err := m.RDMADest()
		return err
	case KindRDMAMap:
		a, err := m.RDMAMap()
		// rds_pages_in_vec in net/rds/rdma.c
		if v := a.Vec; err == nil && (v.Addr+v.Len <= v.Addr || v.Len > math.MaxUint32) {
			err = m.errorf(ErrRefused, "%d bytes at %#x are no range of memory", v.Len, v.Addr)
		}
		return err
	case KindAsyncSend:
		_, err := m.AsyncSend()
		return err
	case KindZerocopyCookie:
		_, err := m.ZerocopyCookie()
		return err
	}
	return m.errorf(ErrRefused, "%v kernels take no such message in a send", m.dialect)
}
