package cmsg

import (
	"strconv"

	"github.com/rdskit/rdskit/internal/abi"
)

// Kind is what a control message is about: its level and type, resolved
// through the dialect. The four atomic operations are one kind.
type Kind uint8

// The kinds of control messages. Those of the first group go with sendmsg,
// those of the second come from recvmsg, RDMADest does both.
const (
	KindUnknown Kind = iota // a level or type that the dialect does not know

	KindRDMAArgs
	KindRDMADest
	KindRDMAMap
	KindAtomic
	KindAsyncSend      // UEK only
	KindZerocopyCookie // mainline only

	KindRDMAStatus
	KindCongestionUpdate
	KindRXPathLatency
	KindZerocopyCompletion // mainline only
	KindINQ                // UEK only
	KindTimestamp
)

// String returns the kind in words, such as "RDMA status".
func (k Kind) String() string {
	switch k {
	case KindUnknown:
		return "unknown"
	case KindRDMAArgs:
		return "RDMA args"
	case KindRDMADest:
		return "RDMA dest"
	case KindRDMAMap:
		return "RDMA map"
	case KindAtomic:
		return "atomic"
	case KindAsyncSend:
		return "async send"
	case KindZerocopyCookie:
		return "zerocopy cookie"
	case KindRDMAStatus:
		return "RDMA status"
	case KindCongestionUpdate:
		return "congestion update"
	case KindRXPathLatency:
		return "receive-path latency"
	case KindZerocopyCompletion:
		return "zerocopy completion"
	case KindINQ:
		return "INQ"
	case KindTimestamp:
		return "timestamp"
	}
	return "kind " + strconv.Itoa(int(k))
}

// Space returns how many bytes of a control buffer one message of the kind
// takes, header and padding included. It is 0 for KindUnknown and for a kind
// that the dialect does not have.
func (k Kind) Space(d Dialect) int {
	l := abi.Layout{}
	n := k.dataSize(d)
	if n == 0 {
		return 0
	}
	return headerSize(l) + align(n, l)
}

// dataSize returns the most bytes of data that a kernel of the dialect puts
// into a message of the kind, or wants to see in it.
func (k Kind) dataSize(d Dialect) int {
	uek := d == UEK
	switch {
	case k == KindRDMAArgs:
		return abi.SizeofRDMAArgs
	case k == KindRDMADest:
		return abi.SizeofCookie
	case k == KindRDMAMap:
		return abi.SizeofGetMRArgs
	case k == KindAtomic && !uek:
		return abi.SizeofAtomicArgs
	case k == KindAtomic:
		return abi.UEK_SizeofAtomicArgs
	case k == KindAsyncSend && uek:
		return abi.UEK_SizeofAsendArgs
	case k == KindZerocopyCookie && !uek:
		return abi.SizeofZcopyCookie
	case k == KindRDMAStatus:
		return abi.SizeofRDMANotify + 4
	case k == KindCongestionUpdate:
		return abi.SizeofCongUpdate
	case k == KindRXPathLatency:
		return 8 + abi.SizeofRxTraces
	case k == KindZerocopyCompletion && !uek:
		return abi.SizeofZcopyCookies
	case k == KindINQ && uek:
		return abi.UEK_SizeofInq
	case k == KindTimestamp:
		return sizeofTimeval64
	}
	return 0
}

// kindOf resolves a level and type.
func kindOf(d Dialect, level, typ int) Kind {
	if level == abi.SOL_SOCKET && (typ == abi.SO_TIMESTAMP_OLD || typ == abi.SO_TIMESTAMP_NEW) {
		return KindTimestamp
	}
	if level != abi.SOL_RDS {
		return KindUnknown
	}
	uek := d == UEK
	switch typ {
	case abi.RDS_CMSG_RDMA_ARGS:
		return KindRDMAArgs
	case abi.RDS_CMSG_RDMA_DEST:
		return KindRDMADest
	case abi.RDS_CMSG_RDMA_MAP:
		return KindRDMAMap
	case abi.RDS_CMSG_RDMA_STATUS:
		return KindRDMAStatus
	case abi.RDS_CMSG_CONG_UPDATE:
		return KindCongestionUpdate
	case abi.RDS_CMSG_ATOMIC_FADD, abi.RDS_CMSG_ATOMIC_CSWP:
		return KindAtomic
	case abi.RDS_CMSG_MASKED_ATOMIC_FADD, abi.RDS_CMSG_MASKED_ATOMIC_CSWP:
		if !uek {
			return KindAtomic
		}
	case abi.UEK_RDS_CMSG_ASYNC_SEND:
		if uek {
			return KindAsyncSend
		}
	case abi.RDS_CMSG_RXPATH_LATENCY:
		return KindRXPathLatency
	case abi.RDS_CMSG_ZCOPY_COOKIE: // 12 in both dialects
		if uek {
			return KindINQ
		}
		return KindZerocopyCookie
	case abi.RDS_CMSG_ZCOPY_COMPLETION:
		if !uek {
			return KindZerocopyCompletion
		}
	}
	return KindUnknown
}
