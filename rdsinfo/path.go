package rdsinfo

import (
	"net/netip"
	"time"
)

// A PathConnection is a connection with its paths. Only UEK reports them. Not
// yet seen on a kernel.
type PathConnection struct {
	Local, Remote netip.Addr
	Transport     string
	TOS           uint8
	Paths         []Path
}

// A Path is one of the paths of a connection.
type Path struct {
	Index uint32
	// Attempted, Connected and Reset are when it was last tried, made and
	// broken, the zero time for never.
	Attempted, Connected, Reset time.Time
	DisconnectReason            uint32
	Attempts                    uint32
	Flags                       ConnectionFlags
}

const (
	sizeofPathConnection = 50
	sizeofPath           = 37
)

// The IPv4 and the IPv6 table have the same records. How many paths one has stands in it; the
// record's size is that of the longest.
func parsePathConnection(r record) PathConnection {
	c := PathConnection{
		Local:     r.addr(0, 16),
		Remote:    r.addr(16, 16),
		Transport: r.text(32, 16),
		TOS:       r.u8(48),
	}
	for i := range int(r.u8(49)) {
		p := sizeofPathConnection + i*sizeofPath
		if !r.has(p, sizeofPath) {
			break
		}
		c.Paths = append(c.Paths, Path{
			Attempted:        r.seconds(p),
			Connected:        r.seconds(p + 8),
			Reset:            r.seconds(p + 16),
			DisconnectReason: r.u32(p + 24),
			Attempts:         r.u32(p + 28),
			Index:            r.u32(p + 32),
			Flags:            ConnectionFlags(r.u8(p + 36)),
		})
	}
	return c
}

// seconds is a time in seconds since 1970, 0 for none.
func (r record) seconds(offset int) time.Time {
	s := int64(r.u64(offset))
	if s == 0 {
		return time.Time{}
	}
	return time.Unix(s, 0)
}

// ConnectionPaths returns the connections with their paths.
func (s *Snapshot) ConnectionPaths() ([]PathConnection, error) {
	return decodeBoth(s, ConnectionPaths,
		sizeofPathConnection, parsePathConnection,
		sizeofPathConnection, parsePathConnection,
		func(c PathConnection) bool { return c.Local.Is4() })
}
