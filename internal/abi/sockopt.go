package abi

import "net/netip"

// Socket options at level SOL_RDS.
const (
	RDS_CANCEL_SENT_TO        = 1  // sockaddr_in or sockaddr_in6; set only
	RDS_GET_MR                = 2  // GetMRArgs; set only
	RDS_FREE_MR               = 3  // FreeMRArgs; set only
	RDS_RECVERR               = 5  // int as a boolean
	RDS_CONG_MONITOR          = 6  // int as a boolean; set only
	RDS_GET_MR_FOR_DEST       = 7  // GetMRForDestArgs; set only
	SO_RDS_TRANSPORT          = 8  // int, a Transport
	SO_RDS_MSG_RXPATH_LATENCY = 10 // RxTraceSo; set only

	UEK_RDS_CONN_RESET   = 8  // Reset; set only, needs CAP_NET_ADMIN
	UEK_SO_RDS_TRANSPORT = 9  // int, a Transport
	UEK_RDS6_CONN_RESET  = 11 // Reset6; set only, needs CAP_NET_ADMIN
	UEK_SO_RDS_INQ       = 12 // int as a boolean
)

// TransportOption returns the number of the option that chooses a socket's
// transport: SO_RDS_TRANSPORT of the dialect.
func (d Dialect) TransportOption() int {
	if d == UEK {
		return UEK_SO_RDS_TRANSPORT
	}
	return SO_RDS_TRANSPORT
}

// Lengths of option values. The kernel takes these exactly; only the int
// options and RDS_CANCEL_SENT_TO of IPv6 allow a longer value.
const (
	SizeofRxTraceSo        = 4
	SizeofReset            = 12
	SizeofReset6           = 36
	SizeofGetMRArgs        = 32
	SizeofGetMRForDestArgs = 160
	SizeofFreeMRArgs       = 16
)

// RxTraceSo is struct rds_rx_trace_so, the value of
// SO_RDS_MSG_RXPATH_LATENCY: which latencies each received message reports.
//
// Kernels before 6.1.76 take a point of 3 and then read past an array
// (rds_cmsg_recv in net/rds/recv.c): never set one of
// RDS_MSG_RX_DGRAM_TRACE_MAX or more.
type RxTraceSo struct {
	Traces uint8 // how many of Pos count
	Pos    [RDS_MSG_RX_DGRAM_TRACE_MAX]uint8
}

// Append appends the 4 bytes of the record to b.
func (t RxTraceSo) Append(b []byte) []byte {
	return append(append(b, t.Traces), t.Pos[:]...)
}

// Reset is struct rds_reset, the value of UEK_RDS_CONN_RESET. A zero Dst means
// every connection of Src.
type Reset struct {
	TOS      uint8
	Src, Dst [4]byte
}

// Append appends the 12 bytes of the record to b.
func (r Reset) Append(b []byte) []byte {
	b = append(b, r.TOS, 0, 0, 0)
	b = append(b, r.Src[:]...)
	return append(b, r.Dst[:]...)
}

// Reset6 is struct rds6_reset, the value of UEK_RDS6_CONN_RESET. A zero Dst
// means every connection of Src.
type Reset6 struct {
	TOS      uint8
	Src, Dst [16]byte
}

// Append appends the 36 bytes of the record to b.
func (r Reset6) Append(b []byte) []byte {
	b = append(b, r.TOS, 0, 0, 0)
	b = append(b, r.Src[:]...)
	return append(b, r.Dst[:]...)
}

// GetMRArgs is struct rds_get_mr_args, the value of RDS_GET_MR and the data of
// the control message RDS_CMSG_RDMA_MAP.
type GetMRArgs struct {
	Vec        Iovec
	CookieAddr uint64 // user address of a u64 that receives the cookie, or 0
	Flags      uint64 // RDS_RDMA_*
}

// Append appends the 32 bytes of the record to b.
func (a GetMRArgs) Append(b []byte, l Layout) []byte {
	b = a.Vec.Append(b, l)
	b = l.AppendUint64(b, a.CookieAddr)
	return l.AppendUint64(b, a.Flags)
}

// ParseGetMRArgs reads the first 32 bytes of b, which must be that long.
func ParseGetMRArgs(b []byte, l Layout) GetMRArgs {
	return GetMRArgs{
		Vec:        ParseIovec(b, l),
		CookieAddr: l.Uint64(b[16:]),
		Flags:      l.Uint64(b[24:]),
	}
}

// GetMRForDestArgs is struct rds_get_mr_for_dest_args, the value of
// RDS_GET_MR_FOR_DEST. Mainline ignores Dest (rds_get_mr_for_dest in
// net/rds/rdma.c).
type GetMRForDestArgs struct {
	Dest  netip.AddrPort // the zero value leaves the family AF_UNSPEC
	Scope uint32         // scope id of a link-local Dest
	GetMRArgs
}

// Append appends the 160 bytes of the record to b.
func (a GetMRForDestArgs) Append(b []byte, l Layout) []byte {
	var dest [SizeofSockaddrIn6]byte
	putSockaddr(&dest, a.Dest, a.Scope, l)
	b = append(b, dest[:]...)
	b = append(b, make([]byte, SizeofSockaddrStorage-len(dest))...)
	return a.GetMRArgs.Append(b, l)
}

// FreeMRArgs is struct rds_free_mr_args, the value of RDS_FREE_MR.
type FreeMRArgs struct {
	Cookie uint64
	Flags  uint64 // RDS_RDMA_INVALIDATE or 0
}

// Append appends the 16 bytes of the record to b.
func (a FreeMRArgs) Append(b []byte, l Layout) []byte {
	return l.AppendUint64(l.AppendUint64(b, a.Cookie), a.Flags)
}
