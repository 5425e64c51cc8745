package abi

import "strconv"

// Transport is the value of the socket option SO_RDS_TRANSPORT: what carries
// the messages of a socket.
type Transport int32

// The transports. RDS_TRANS_LOOP and RDS_TRANS_NONE are only ever read back:
// LOOP from a socket bound to 127.0.0.0/8 or ::1, NONE from an unbound one.
// Setting them fails with EINVAL (rds_set_transport in net/rds/af_rds.c).
const (
	RDS_TRANS_IB    Transport = 0
	RDS_TRANS_GAP   Transport = 1
	RDS_TRANS_TCP   Transport = 2
	RDS_TRANS_LOOP  Transport = 3 // net/rds/rds.h, not in the uapi header
	RDS_TRANS_NONE  Transport = -1
	RDS_TRANS_IWARP           = RDS_TRANS_GAP // the number's name until Linux 5.5
)

// String returns the name the kernel itself gives the transport in its
// connection tables (t_name of struct rds_transport): "infiniband", "tcp" or
// "loopback". It is "none" for RDS_TRANS_NONE and "iwarp" for the number that
// no transport uses any more.
func (t Transport) String() string {
	switch t {
	case RDS_TRANS_IB:
		return "infiniband"
	case RDS_TRANS_GAP:
		return "iwarp"
	case RDS_TRANS_TCP:
		return "tcp"
	case RDS_TRANS_LOOP:
		return "loopback"
	case RDS_TRANS_NONE:
		return "none"
	}
	return "transport " + strconv.Itoa(int(t))
}
