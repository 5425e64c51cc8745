package rdsinfo

import (
	"net/netip"

	"github.com/rdskit/rdskit/internal/abi"
)

// A Connection is the kernel's connection between two addresses with one type
// of service, which all sockets bound to the local address share. Over TCP it has
// several paths, of which the sequence numbers and flags show the first
// (net/rds/connection.c:rds_conn_info_visitor).
type Connection struct {
	Local, Remote netip.Addr
	// TOS is not reported for IPv6 on mainline.
	TOS       Optional[uint8]
	Transport string // as the kernel calls it: infiniband, tcp, loopback
	// NextTX and NextRX are the sequence numbers of the next message sent and received.
	NextTX, NextRX uint64
	Flags          ConnectionFlags
}

// ConnectionFlags are what the kernel tells about the state of a connection.
type ConnectionFlags uint8

const (
	Sending    ConnectionFlags = abi.RDS_INFO_CONNECTION_FLAG_SENDING // a thread is sending at this moment
	Connecting ConnectionFlags = abi.RDS_INFO_CONNECTION_FLAG_CONNECTING
	Connected  ConnectionFlags = abi.RDS_INFO_CONNECTION_FLAG_CONNECTED
	Failed     ConnectionFlags = abi.UEK_RDS_INFO_CONNECTION_FLAG_ERROR // told by UEK only
)

// String returns the flags as "scCE", with "-" for those that are not set.
func (f ConnectionFlags) String() string {
	b := []byte("----")
	for i, flag := range []ConnectionFlags{Sending, Connecting, Connected, Failed} {
		if f&flag != 0 {
			b[i] = "scCE"[i]
		}
	}
	return string(b)
}

// A ConnectionState sums up the flags of a connection.
type ConnectionState int

const (
	StateDown ConnectionState = iota
	StateConnecting
	StateUp
	StateError // told by UEK only
)

// String returns "down", "connecting", "up" or "error".
func (s ConnectionState) String() string {
	switch s {
	case StateConnecting:
		return "connecting"
	case StateUp:
		return "up"
	case StateError:
		return "error"
	}
	return "down"
}

// MarshalText returns the state's name.
func (s ConnectionState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// State returns what the flags say.
func (c Connection) State() ConnectionState {
	switch {
	case c.Flags&Failed != 0:
		return StateError
	case c.Flags&Connected != 0:
		return StateUp
	case c.Flags&Connecting != 0:
		return StateConnecting
	}
	return StateDown
}

// The records end with the type of service, which older kernels leave out of
// the first, and mainline out of the second.
const (
	sizeofConnection  = 41
	sizeofConnection6 = 65
)

func parseConnection(r record) Connection  { return parseConnectionOf(r, 4) }
func parseConnection6(r record) Connection { return parseConnectionOf(r, 16) }

func parseConnectionOf(r record, addrSize int) Connection {
	end := 16 + 2*addrSize
	return Connection{
		NextTX:    r.u64(0),
		NextRX:    r.u64(8),
		Local:     r.addr(16, addrSize),
		Remote:    r.addr(16+addrSize, addrSize),
		Transport: r.text(end, 16),
		Flags:     ConnectionFlags(r.u8(end + 16)),
		TOS:       r.maybe8(end + 17),
	}
}

// Connections returns the connections, those that are not up too. A connection
// that has been used once stays until its transport's module or its
// namespace goes.
func (s *Snapshot) Connections() ([]Connection, error) {
	return decodeBoth(s, Connections,
		sizeofConnection, parseConnection,
		sizeofConnection6, parseConnection6,
		func(c Connection) bool { return c.Local.Is4() })
}
