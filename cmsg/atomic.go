package cmsg

import (
	"fmt"
	"strconv"

	"github.com/rdskit/rdskit/internal/abi"
)

// AtomicOp is what an atomic operation does to 8 bytes of remote memory.
type AtomicOp uint8

const (
	AtomicFetchAdd          AtomicOp = iota // add Add
	AtomicCompareSwap                       // store Swap if the value equals Compare
	AtomicMaskedFetchAdd                    // add Add, no carry out of the bits of NoCarryMask; mainline only
	AtomicMaskedCompareSwap                 // compare the bits of CompareMask, store the bits of SwapMask; mainline only
)

// String returns "fetch-add", "compare-swap", "masked fetch-add" or "masked
// compare-swap".
func (op AtomicOp) String() string {
	switch op {
	case AtomicFetchAdd:
		return "fetch-add"
	case AtomicCompareSwap:
		return "compare-swap"
	case AtomicMaskedFetchAdd:
		return "masked fetch-add"
	case AtomicMaskedCompareSwap:
		return "masked compare-swap"
	}
	return "atomic " + strconv.Itoa(int(op))
}

// Atomic is struct rds_atomic_args: it makes sendmsg start an atomic
// operation. Operands are in the program's byte order.
//
// Few devices can do it. One that cannot fails when the operation is posted,
// which neither sendmsg nor a status tells, and the connection then stays
// blocked; seen with rdma_rxe on Linux 6.1 and 6.12.
type Atomic struct {
	Op AtomicOp

	Key        Key    // of the remote region
	RemoteAddr uint64 // offset in the remote region of the 8 bytes, a multiple of 8
	LocalAddr  uint64 // user address where the old value is written, a multiple of 8

	Add         uint64 // fetch-add, masked fetch-add
	NoCarryMask uint64 // masked fetch-add
	Compare     uint64 // compare-swap, masked compare-swap
	Swap        uint64 // compare-swap, masked compare-swap
	CompareMask uint64 // masked compare-swap
	SwapMask    uint64 // masked compare-swap

	Flags Flags  // FlagNotifyMe, FlagSilent
	Token uint64 // comes back in the RDMAStatus
}

// operands returns pointers to the operands of the operation in the order in
// which the dialect's record has them.
//
// Mainline's record has a union of 32 bytes. UEK's has two words, swap_add and
// compare: what is to be stored comes before what is compared.
func (a *Atomic) operands(d Dialect) [4]*uint64 {
	switch {
	case a.Op == AtomicFetchAdd:
		return [4]*uint64{&a.Add}
	case a.Op == AtomicMaskedFetchAdd:
		return [4]*uint64{&a.Add, &a.NoCarryMask}
	case a.Op == AtomicCompareSwap && d == UEK:
		return [4]*uint64{&a.Swap, &a.Compare}
	case a.Op == AtomicCompareSwap:
		return [4]*uint64{&a.Compare, &a.Swap}
	default:
		return [4]*uint64{&a.Compare, &a.Swap, &a.CompareMask, &a.SwapMask}
	}
}

// atomicOperands returns how many operand words the dialect's record has.
func atomicOperands(d Dialect) int {
	if d == UEK {
		return 2
	}
	return 4
}

// AppendAtomic appends an RDS_CMSG_ATOMIC_FADD, ATOMIC_CSWP,
// MASKED_ATOMIC_FADD or MASKED_ATOMIC_CSWP, in the layout of the dialect. UEK
// has no masked ones. An operand that is not 0 although the operation does not
// take it is an error.
func (e Encoder) AppendAtomic(b []byte, a Atomic) ([]byte, error) {
	if a.Op > AtomicMaskedCompareSwap {
		return b, fmt.Errorf("cmsg: %v is no operation", a.Op)
	}
	if e.Dialect == UEK && a.Op >= AtomicMaskedFetchAdd {
		return b, unsupported(e.Dialect, a.Op.String())
	}
	var words [4]uint64
	rest := a
	for i, p := range rest.operands(e.Dialect) {
		if p != nil {
			words[i], *p = *p, 0
		}
	}
	if rest.Add|rest.NoCarryMask|rest.Compare|rest.Swap|rest.CompareMask|rest.SwapMask != 0 {
		return b, fmt.Errorf("cmsg: %v with an operand of another operation: %+v", a.Op, a)
	}
	n := atomicOperands(e.Dialect)
	b = e.begin(b, abi.RDS_CMSG_ATOMIC_FADD+int(a.Op), KindAtomic.dataSize(e.Dialect))
	b = e.layout.AppendUint64(b, uint64(a.Key))
	b = e.layout.AppendUint64(b, a.LocalAddr)
	b = e.layout.AppendUint64(b, a.RemoteAddr)
	for _, w := range words[:n] {
		b = e.layout.AppendUint64(b, w)
	}
	b = e.layout.AppendUint64(b, uint64(a.Flags))
	return e.layout.AppendUint64(b, a.Token), nil
}

// Atomic decodes an atomic operation from the layout of the dialect. Operands
// that the operation does not take are left 0, whatever the message has there.
func (m Message) Atomic() (Atomic, error) {
	b, err := m.data(KindAtomic, KindAtomic.dataSize(m.dialect))
	if err != nil {
		return Atomic{}, err
	}
	a := Atomic{
		Op:         AtomicOp(m.Type - abi.RDS_CMSG_ATOMIC_FADD),
		Key:        Key(m.layout.Uint64(b)),
		LocalAddr:  m.layout.Uint64(b[8:]),
		RemoteAddr: m.layout.Uint64(b[16:]),
	}
	for i, p := range a.operands(m.dialect) {
		if p != nil {
			*p = m.layout.Uint64(b[24+8*i:])
		}
	}
	end := b[24+8*atomicOperands(m.dialect):]
	a.Flags = Flags(m.layout.Uint64(end))
	a.Token = m.layout.Uint64(end[8:])
	return a, nil
}
