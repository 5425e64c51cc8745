package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"strings"
)

// DefaultPort is the TCP port of the control connection. RDS ports follow it.
const DefaultPort = 4000

// Options are what the active side tells the passive side to do.
type Options struct {
	Depth    uint32 // requests without an answer, for each flow
	ReqSize  uint32 // bytes, header included
	AckSize  uint32 // bytes, header included
	RDMASize uint32 // bytes of an element of an RDMA operation; 0 is no RDMA

	// SendAddr is the passive side's address and RecvAddr that of the active
	// side, both as the active side sees them. Scope is its IPv6 zone.
	SendAddr, RecvAddr netip.Addr
	Scope              uint32

	Port  uint16 // of the control connection
	Tasks uint16
	Time  uint32 // s, 0 for endless; the passive side goes by the end of the connection

	SummaryOnly    bool
	RTPrio         bool
	Trace          bool
	Verify         bool
	ShowParams     bool
	ShowPerfdata   bool
	CongMonitor    bool
	RDMAUseOnce    bool
	RDMAUseGetMR   bool
	RDMAUseFence   bool
	RDMACacheMRs   bool
	RDMAKeyOMeter  bool
	Simplex        bool // the active side alone sends requests
	RDMAMode       RDMAMode
	RDMAVector     uint32 // elements of an RDMA operation
	RDMAAlignment  uint32 // bytes
	ConnectRetries uint32

	// Sender tells the two implementations apart: the C tool sends 0xff here and
	// reads it nowhere.
	Sender Sender

	// Version names the sender's release in the long forms.
	Version string
	// WantsJSON says that the active side goes on to exchange JSON, as 2.3.9 does.
	WantsJSON bool
	TOS       uint8
	Async     bool

	// What follows is in the JSON alone.
	NoINQ              bool // do not ask how much is unread
	Bursty, SyncBursty bool // send until no more may be unanswered, then receive; all tasks together
}

// Sender is the byte that only rdskit sets.
type Sender uint8

const (
	SenderC      Sender = 0xff
	SenderRDSKit Sender = 0x52
)

// RDMAMode is which RDMA operations the requests of a run ask for.
type RDMAMode uint8

const (
	RDMAReadWrite RDMAMode = iota // in turn
	RDMAReadOnly
	RDMAWriteOnly
)

func (m RDMAMode) String() string {
	switch m {
	case RDMAReadWrite:
		return "read and write"
	case RDMAReadOnly:
		return "read"
	case RDMAWriteOnly:
		return "write"
	}
	return fmt.Sprintf("mode %d", uint8(m))
}

// A Form is one of the layouts in which releases send Options.
type Form uint8

const (
	// Short is that of 2.0.6 and of all releases without -Q and --async.
	Short Form = iota
	// Long has version, TOS and the async flag: 2.0.7, and 2.3 built for UEK.
	Long
	// LongMainline is that of 2.3 built for mainline kernels, which has no async flag.
	LongMainline
	// IPv6 and IPv6Mainline are the long ones with IPv6 addresses, of 2.3.
	IPv6
	IPv6Mainline
)

const (
	versionSize = 16
	shortSize   = 59
	ipv6Size    = 16 + 16 + 4
	// PrefixSize is how many bytes tell whether a form is long.
	PrefixSize = versionSize
	// MaxSize is the length of the longest form.
	MaxSize = versionSize + shortSize + 2 + ipv6Size
)

func (f Form) String() string {
	switch f {
	case Short:
		return "short"
	case Long:
		return "long"
	case LongMainline:
		return "long without async"
	case IPv6:
		return "IPv6"
	case IPv6Mainline:
		return "IPv6 without async"
	}
	return fmt.Sprintf("form %d", uint8(f))
}

// Size is the length in bytes.
func (f Form) Size() int {
	switch f {
	case Long:
		return versionSize + shortSize + 2
	case LongMainline:
		return versionSize + shortSize + 1
	case IPv6:
		return MaxSize
	case IPv6Mainline:
		return MaxSize - 1
	}
	return shortSize
}

func (f Form) hasAsync() bool { return f == Long || f == IPv6 }

// Forms tells which forms a block of options can have by its first PrefixSize
// bytes and by whether it came over IPv6: the long ones begin with the digit of a version,
// the short one with the high byte of a depth, which is no digit for any depth below
// 800 million. Where two are possible, the shorter comes first.
func Forms(prefix []byte, ipv6 bool) []Form {
	switch {
	case prefix[0] < '0' || prefix[0] > '9':
		return []Form{Short}
	case ipv6:
		return []Form{IPv6Mainline, IPv6}
	}
	return []Form{LongMainline, Long}
}

// jsonFlag stands behind the version, its NUL and two bytes more.
var jsonFlag = []byte("json")

const jsonFlagGap = 3

// MaxVersion is how long a version can be, in bytes.
const MaxVersion = versionSize - 1

// Append appends o in form f. The short forms lose what they have no room for.
func (o *Options) Append(b []byte, f Form) []byte {
	if f != Short {
		var version [versionSize]byte
		n := copy(version[:MaxVersion], o.Version)
		if o.WantsJSON {
			copy(version[min(n+jsonFlagGap, versionSize):], jsonFlag)
		}
		b = append(b, version[:]...)
	}
	be := binary.BigEndian
	b = be.AppendUint32(b, o.Depth)
	b = be.AppendUint32(b, o.ReqSize)
	b = be.AppendUint32(b, o.AckSize)
	b = be.AppendUint32(b, o.RDMASize)
	b = append(b, as4(o.SendAddr)...)
	b = append(b, as4(o.RecvAddr)...)
	b = be.AppendUint16(b, o.Port)
	b = be.AppendUint16(b, o.Tasks)
	b = be.AppendUint32(b, o.Time)
	for _, flag := range o.flags() {
		b = append(b, boolByte(*flag))
	}
	b = append(b, byte(o.Sender), boolByte(o.Simplex), byte(o.RDMAMode))
	b = be.AppendUint32(b, o.RDMAVector)
	b = be.AppendUint32(b, o.RDMAAlignment)
	b = be.AppendUint32(b, o.ConnectRetries)
	if f == Short {
		return b
	}
	b = append(b, o.TOS)
	if f.hasAsync() {
		b = append(b, boolByte(o.Async))
	}
	if f == IPv6 || f == IPv6Mainline {
		b = append(b, as16(o.SendAddr)...)
		b = append(b, as16(o.RecvAddr)...)
		b = be.AppendUint32(b, o.Scope)
	}
	return b
}

// flags are those that follow the run time, one byte each.
func (o *Options) flags() [12]*bool {
	return [...]*bool{
		&o.SummaryOnly, &o.RTPrio, &o.Trace, &o.Verify, &o.ShowParams, &o.ShowPerfdata,
		&o.CongMonitor, &o.RDMAUseOnce, &o.RDMAUseGetMR, &o.RDMAUseFence, &o.RDMACacheMRs, &o.RDMAKeyOMeter,
	}
}

// ErrShort says that a block of options was cut off.
var ErrShort = errors.New("short block of options")

// Decode takes o from the bytes of form f. The numbers are what the peer
// says: bounds are up to the caller.
func (o *Options) Decode(b []byte, f Form) error {
	if len(b) < f.Size() {
		return fmt.Errorf("%w: %d bytes, the %v form has %d", ErrShort, len(b), f, f.Size())
	}
	*o = Options{}
	if f != Short {
		version, rest, _ := bytes.Cut(b[:versionSize], []byte{0})
		o.Version = strings.ToValidUTF8(string(version), "?")
		o.WantsJSON = len(rest) >= 2+len(jsonFlag) && bytes.HasPrefix(rest[2:], jsonFlag)
		b = b[versionSize:]
	}
	d := decoder{b}
	o.Depth, o.ReqSize, o.AckSize, o.RDMASize = d.uint32(), d.uint32(), d.uint32(), d.uint32()
	o.SendAddr, o.RecvAddr = netip.AddrFrom4([4]byte(d.next(4))), netip.AddrFrom4([4]byte(d.next(4)))
	o.Port, o.Tasks = d.uint16(), d.uint16()
	o.Time = d.uint32()
	for _, flag := range o.flags() {
		*flag = d.byte() != 0
	}
	o.Sender, o.Simplex, o.RDMAMode = Sender(d.byte()), d.byte() != 0, RDMAMode(d.byte())
	o.RDMAVector, o.RDMAAlignment, o.ConnectRetries = d.uint32(), d.uint32(), d.uint32()
	if f == Short {
		return nil
	}
	o.TOS = d.byte()
	if f.hasAsync() {
		o.Async = d.byte() != 0
	}
	if f == IPv6 || f == IPv6Mainline {
		o.SendAddr, o.RecvAddr = netip.AddrFrom16([16]byte(d.next(16))), netip.AddrFrom16([16]byte(d.next(16)))
		o.Scope = d.uint32()
	}
	return nil
}

// A decoder takes fields off a block whose length has been checked.
type decoder struct{ b []byte }

func (d *decoder) next(n int) []byte {
	field := d.b[:n]
	d.b = d.b[n:]
	return field
}

func (d *decoder) byte() byte     { return d.next(1)[0] }
func (d *decoder) uint16() uint16 { return binary.BigEndian.Uint16(d.next(2)) }
func (d *decoder) uint32() uint32 { return binary.BigEndian.Uint32(d.next(4)) }

// as4 is an IPv4 address, 0.0.0.0 for any other.
func as4(a netip.Addr) []byte {
	if a = a.Unmap(); !a.Is4() {
		a = netip.IPv4Unspecified()
	}
	return a.AsSlice()
}

func as16(a netip.Addr) []byte {
	if !a.IsValid() {
		a = netip.IPv6Unspecified()
	}
	b := a.As16()
	return b[:]
}

func boolByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}
