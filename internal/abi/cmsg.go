package abi

// Control messages at level SOL_RDS.
const (
	RDS_CMSG_RDMA_ARGS          = 1
	RDS_CMSG_RDMA_DEST          = 2
	RDS_CMSG_RDMA_MAP           = 3
	RDS_CMSG_RDMA_STATUS        = 4 // RDS_CMSG_RDMA_SEND_STATUS of UEK
	RDS_CMSG_CONG_UPDATE        = 5
	RDS_CMSG_ATOMIC_FADD        = 6
	RDS_CMSG_ATOMIC_CSWP        = 7
	RDS_CMSG_MASKED_ATOMIC_FADD = 8 // UEK's header has it, its kernel refuses it
	RDS_CMSG_MASKED_ATOMIC_CSWP = 9 // as 8
	RDS_CMSG_RXPATH_LATENCY     = 11
	RDS_CMSG_ZCOPY_COOKIE       = 12 // not on UEK
	RDS_CMSG_ZCOPY_COMPLETION   = 13 // not on UEK

	UEK_RDS_CMSG_ASYNC_SEND = 10
	UEK_RDS_CMSG_INQ        = 12
)

// Sizes of the data of control messages.
const (
	SizeofCookie       = 8  // rds_rdma_cookie_t, RDS_CMSG_RDMA_DEST
	SizeofRDMAArgs     = 56 // struct rds_rdma_args
	SizeofAtomicArgs   = 72 // struct rds_atomic_args
	SizeofCongUpdate   = 8  // u64
	SizeofZcopyCookie  = 4  // u32
	SizeofZcopyCookies = 36 // struct rds_zcopy_cookies

	// struct rds_rdma_notify ends with an s32 after a u64: 4 bytes of padding
	// follow, except where a u64 is aligned to 4 bytes.
	SizeofRDMANotify = 12

	// struct rds_cmsg_rx_trace has its three u64 after 4 bytes: they start at
	// 8, or at 4 where a u64 is aligned to 4 bytes.
	SizeofRxTraces = RDS_MSG_RX_DGRAM_TRACE_MAX * 8

	UEK_SizeofAtomicArgs = 56 // struct rds_atomic_args
	UEK_SizeofAsendArgs  = 16 // struct rds_asend_args
	UEK_SizeofInq        = 4  // int
)

// RDS_MAX_ZCOOKIES is how many cookies one RDS_CMSG_ZCOPY_COMPLETION holds.
const RDS_MAX_ZCOOKIES = 8

// Points of the receive path whose latency a message can report.
const (
	RDS_MSG_RX_HDR_TO_DGRAM_START = 0
	RDS_MSG_RX_DGRAM_REASSEMBLE   = 1
	RDS_MSG_RX_DGRAM_DELIVERED    = 2
	RDS_MSG_RX_DGRAM_TRACE_MAX    = 3
)

// Numbers at level SOL_SOCKET that do not depend on the architecture, for
// those that Go knows.
const (
	SO_TIMESTAMP_OLD = 29
	SO_TIMESTAMP_NEW = 63
)
