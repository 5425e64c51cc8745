package abi

// Flags of memory regions and RDMA operations. The kernel ignores bits that it
// does not know, so a flag's presence cannot be probed.
const (
	RDS_RDMA_READWRITE  = 0x0001
	RDS_RDMA_FENCE      = 0x0002
	RDS_RDMA_INVALIDATE = 0x0004
	RDS_RDMA_USE_ONCE   = 0x0008
	RDS_RDMA_DONTWAIT   = 0x0010
	RDS_RDMA_NOTIFY_ME  = 0x0020
	RDS_RDMA_SILENT     = 0x0040

	UEK_RDS_RDMA_REMOTE_COMPLETE = 0x0080
	UEK_RDS_SEND_NOTIFY_ME       = 0x0100
)

// Status values in the control message RDS_CMSG_RDMA_STATUS.
const (
	RDS_RDMA_SUCCESS      = 0
	RDS_RDMA_REMOTE_ERROR = 1
	RDS_RDMA_CANCELED     = 2
	RDS_RDMA_DROPPED      = 3
	RDS_RDMA_OTHER_ERROR  = 4
)

// SizeofIovec is sizeof(struct rds_iovec).
const SizeofIovec = 16

// Iovec is struct rds_iovec: a range of memory by its user address, or of a
// remote region by its offset. The address is a number, so nothing here keeps
// the memory alive.
type Iovec struct {
	Addr  uint64
	Bytes uint64
}

// Append appends the 16 bytes of the record to b.
func (v Iovec) Append(b []byte, l Layout) []byte {
	return l.AppendUint64(l.AppendUint64(b, v.Addr), v.Bytes)
}

// ParseIovec reads the first 16 bytes of b, which must be that long.
func ParseIovec(b []byte, l Layout) Iovec {
	return Iovec{Addr: l.Uint64(b), Bytes: l.Uint64(b[8:])}
}
