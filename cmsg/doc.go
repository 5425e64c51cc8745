// Package cmsg encodes and decodes the control messages of the Linux kernel's
// Reliable Datagram Sockets: the requests that go along with sendmsg and the
// notifications that recvmsg brings. It makes no system call and works on any
// system, always on the layouts of Linux.
//
// # Dialects
//
// Mainline kernels and Oracle's UEK give the same numbers to different
// messages: type 12 is a zerocopy cookie on the one and the length of the
// receive queue on the other, and an atomic operation has another size and
// another order of operands. So decoding and encoding are told the [Dialect].
// Types that a dialect does not know come out of [Parse] as [KindUnknown],
// with their bytes.
//
// # Receiving
//
// [Parse] walks over the control buffer of a recvmsg without allocating.
// [Message.Data] is a part of that buffer; what the decoding methods return is
// not. The kernel shortens a message for which the buffer has too little room,
// and drops one for which not even a header fits: always look at MSG_CTRUNC
// too. A notification lost that way is lost for good, also with MSG_PEEK. On
// mainline one receive brings either RDMA statuses, or one congestion update,
// or what belongs to a message, in the order RDMA dest, timestamp,
// receive-path latency, zerocopy completion (rds_recvmsg in net/rds/recv.c).
//
// # Sending
//
// An [Encoder] appends to a buffer what sendmsg takes. Memory is named by its
// address, as a number; whose it is and how long it lives is up to the caller,
// see package rdma for the safe way. Not every combination is possible:
// [Check] says why the kernel refused one.
//
// # Sources
//
// include/uapi/linux/rds.h, net/rds/send.c (rds_rm_size, rds_cmsg_send),
// net/rds/recv.c (rds_cmsg_recv, rds_notify_queue_get, rds_notify_cong,
// rds_recvmsg_zcookie) and net/rds/rdma.c of Linux 6.1; for UEK the copy of
// its header in rds-tools 2.3.11.
package cmsg
