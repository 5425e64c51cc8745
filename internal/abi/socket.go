package abi

// Numbers of RDS sockets that the dialects share.
const (
	AF_INET  = 2
	AF_INET6 = 10
	AF_RDS   = 21
	SOL_RDS  = 276

	// Ioctls, with a pointer to one byte: the socket's type of service.
	SIOCRDSSETTOS = SIOCPROTOPRIVATE
	SIOCRDSGETTOS = SIOCPROTOPRIVATE + 1

	SIOCPROTOPRIVATE = 0x89E0
)

// Limits and well-known ports.
const (
	// RDS_MAX_MSG_SIZE bounds the payload of one message, and separately the
	// bytes its RDMA operations move (net/rds/rds.h, rds_sendmsg).
	RDS_MAX_MSG_SIZE = 1 << 20

	// RDS_PING_PORT is answered by the kernel itself: a message to port 0
	// brings back an empty one (rds_recv_incoming in net/rds/recv.c).
	RDS_PING_PORT = 0

	// RDS_FLAG_PROBE_PORT is the kernel's own, for the multipath handshake;
	// bind refuses it with EINVAL (rds_add_bound in net/rds/bind.c).
	RDS_FLAG_PROBE_PORT = 1

	RDS_TCP_PORT = 16385 // listener of rds_tcp, and the RDMA-CM port of IPv6
	RDS_PORT     = 18634 // RDMA-CM port of IPv4

	// RDS_MPATH_WORKERS is the most TCP connections one pair of hosts uses.
	RDS_MPATH_WORKERS = 8

	// UIO_MAXIOV bounds the local vectors of one RDMA operation.
	UIO_MAXIOV = 1024
)
