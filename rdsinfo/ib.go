package rdsinfo

import "net/netip"

// An IBConnection is what InfiniBand, RoCE or a soft version of it has below a
// connection. Fields after TOS and SL are zero, and the GIDs ::, unless the connection is up
// (net/rds/ib.c:rds_ib_conn_info_visitor).
type IBConnection struct {
	Local, Remote       netip.Addr
	LocalGID, RemoteGID netip.Addr // 16 bytes, IPv4-mapped ones included
	// TOS and SL, the service level, are not reported by kernels of the 4 series.
	TOS, SL Optional[uint8]

	MaxSendWR, MaxRecvWR   uint32 // work requests
	MaxSendSGE             uint32 // scatter-gather elements
	RDMAMRMax, RDMAMRSize  uint32 // memory regions, and pages in each
	CacheAllocs            Optional[uint32]
	Frag                   Optional[uint32] // UEK from here on; not yet seen on a kernel
	PostCredit, SendCredit Optional[uint16]
	QPNum, RemoteQPNum     Optional[int32]

	RecvAllocs, RecvFrees  Optional[uint32]
	SendAllocs, SendFrees  Optional[uint32]
	SendBytes, RecvBytes   Optional[uint64]
	ReadBytes, WriteBytes  Optional[uint64] // of RDMA
	TXPollMillis           Optional[uint64]
	RXPollMillis           Optional[uint64]
	TXPolls, RXPolls       Optional[uint64]
	SendVector, RecvVector Optional[int32] // of the completion queues
}

const (
	sizeofIBConnection  = 60
	sizeofIBConnection6 = 84
)

func parseIBConnection(r record) IBConnection  { return parseIBConnectionOf(r, 4) }
func parseIBConnection6(r record) IBConnection { return parseIBConnectionOf(r, 16) }

func parseIBConnectionOf(r record, addrSize int) IBConnection {
	gids := 2 * addrSize
	b := gids + 32 // where the numbers begin
	// The kernel's struct is not packed.
	align := r.layout.Uint64Align()
	wide := (b + 60 + align - 1) &^ (align - 1) // and where those of 64 bits begin
	return IBConnection{
		Local:        r.addr(0, addrSize),
		Remote:       r.addr(addrSize, addrSize),
		LocalGID:     r.gid(gids),
		RemoteGID:    r.gid(gids + 16),
		MaxSendWR:    r.u32(b),
		MaxRecvWR:    r.u32(b + 4),
		MaxSendSGE:   r.u32(b + 8),
		RDMAMRMax:    r.u32(b + 12),
		RDMAMRSize:   r.u32(b + 16),
		TOS:          r.maybe8(b + 20),
		SL:           r.maybe8(b + 21),
		CacheAllocs:  r.maybe32(b + 24),
		Frag:         r.maybe32(b + 28),
		PostCredit:   r.maybe16(b + 32),
		SendCredit:   r.maybe16(b + 34),
		QPNum:        r.maybeInt32(b + 36),
		RecvAllocs:   r.maybe32(b + 40),
		RecvFrees:    r.maybe32(b + 44),
		RemoteQPNum:  r.maybeInt32(b + 48),
		SendAllocs:   r.maybe32(b + 52),
		SendFrees:    r.maybe32(b + 56),
		SendBytes:    r.maybe64(wide),
		RecvBytes:    r.maybe64(wide + 8),
		ReadBytes:    r.maybe64(wide + 16),
		WriteBytes:   r.maybe64(wide + 24),
		TXPollMillis: r.maybe64(wide + 32),
		RXPollMillis: r.maybe64(wide + 40),
		TXPolls:      r.maybe64(wide + 48),
		RXPolls:      r.maybe64(wide + 56),
		SendVector:   r.maybeInt32(wide + 64),
		RecvVector:   r.maybeInt32(wide + 68),
	}
}

// gid is a GID of 16 bytes, as it is.
func (r record) gid(offset int) netip.Addr {
	return netip.AddrFrom16([16]byte(r.b[offset : offset+16]))
}

// IBConnections returns the InfiniBand side of the connections.
func (s *Snapshot) IBConnections() ([]IBConnection, error) {
	return decodeBoth(s, IBConnections,
		sizeofIBConnection, parseIBConnection,
		sizeofIBConnection6, parseIBConnection6,
		func(c IBConnection) bool { return c.Local.Is4() })
}
