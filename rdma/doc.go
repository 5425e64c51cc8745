// Package rdma moves memory between hosts through the kernel's Reliable Datagram
// Sockets over InfiniBand or RoCE: one-sided reads and writes, and the registration
// of memory that peers may reach.
//
// [New] makes a [Conn] of an RDS socket that is bound to an address of an InfiniBand or
// RoCE interface, in the initial network namespace, where the module rds_rdma is loaded.
//
// # Regions
//
// A [Region] is memory outside the Go heap, in whole pages, that children of
// fork(2) do not get. Everything that the kernel or a device is told by address
// lies in such memory: no Go pointer is ever hidden in an integer. A [Slice] is a
// part of a Region. The memory stays mapped until what uses it has ended, whatever
// the caller does: [Region.Close] waits.
//
// # Registrations
//
// A [Registration] makes a Slice reachable for peers until it is revoked or its
// Conn is closed. [Conn.Offer] sends its key along with a message to a peer, which
// finds it with [Conn.Receive]; [Conn.Register] registers memory of any size, whose
// keys travel in the program's own payload as a [Remote].
//
// Pages are exposed, not bytes: whoever has a key can read and write all of the
// first and of the last page that the Slice touches, also when only a part of them
// belongs to it (net/rds/rdma.c:__rds_rdma_map pins whole pages,
// net/rds/ib_frmr.c:rds_ib_post_reg_frmr lets every region be read and written). A
// Slice that begins and ends at page boundaries, as a whole Region does, exposes
// nothing else.
//
// A key is no secret. Keys are 32 bits that are easily guessed, and the device lets in
// whoever has an RDS connection to it, not only who was given the key.
//
// # Operations
//
// [Conn.Read] and [Conn.Write] move any amount of memory and return when it has
// moved. [Conn.StartRead] and [Conn.StartWrite] start one [Operation] of the
// kernel, up to 1 MiB, whose end is awaited with [Operation.Wait] or told by its
// Done function. A message follows each operation on its way, empty or with a
// payload, unless it is Silent: when the peer reads it, the operation is over. A
// program that owns memory receives these messages, or has its peers be Silent: empty
// ones that nobody reads pile up in the kernel, since they count as 0 bytes of the
// receive buffer (net/rds/recv.c:rds_recv_rcvbuf_delta).
//
// The kernel never repeats an operation. One that was under way when the connection
// broke ends with [ErrDropped] or [ErrFailed] and may have moved nothing, all, or a
// part. A key that the peer does not know, or has revoked, ends it with
// [ErrRemoteAccess] and breaks the connection, which the kernel makes anew by
// itself: other operations under way to that host fail too. A peer that stays dead
// makes the kernel report nothing at all: Wait then ends with its context, the
// operation goes on, and [Conn.Cancel] or [Conn.Close] ends it.
//
// Nothing here runs in the background. What the kernel reports is taken in by the
// calls that wait: Wait, Read, Write, Receive, [Conn.DeliverCompletions], and every
// receive of the rdssock.Conn.
package rdma
