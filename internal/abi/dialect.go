package abi

import "strconv"

// Dialect says which of the two numberings of the RDS interface a kernel
// speaks. They clash: socket option 8 chooses the transport on mainline and
// resets connections on UEK, control message 12 is a zerocopy cookie on one
// and a queue length on the other. A number must never be sent on a guess.
//
// The read-only way to tell them apart is getsockopt(SOL_RDS, 8) of an int: a
// mainline kernel answers, UEK fails with ENOPROTOOPT (rds_getsockopt in
// net/rds/af_rds.c of both).
type Dialect uint8

const (
	// Mainline is the numbering of kernel.org and of the distributions that
	// follow it.
	Mainline Dialect = iota
	// UEK is the numbering of Oracle's Unbreakable Enterprise Kernel.
	UEK
)

// String returns "mainline" or "UEK".
func (d Dialect) String() string {
	switch d {
	case Mainline:
		return "mainline"
	case UEK:
		return "UEK"
	}
	return "dialect " + strconv.Itoa(int(d))
}
