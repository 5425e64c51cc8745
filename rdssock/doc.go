// Package rdssock opens Reliable Datagram Sockets (AF_RDS) of the Linux kernel.
//
// An RDS socket is bound to one local address and port and exchanges messages
// of up to 1 MiB with any number of peers, over InfiniBand, RoCE or TCP
// connections that the kernel makes and shares among sockets by itself. The
// kernel keeps messages between a pair of sockets in order, and keeps them until the
// kernel of the peer has them. It does not tell whether the peer's program
// received them, nor whether anything listens there at all: a message to a
// port that nobody has bound is dropped without a word.
//
// Conn is a net.PacketConn, but for these properties of RDS:
//
//   - There is no wildcard address. A socket is bound to one address of this
//     host, and that address decides which transport carries its messages.
//   - An empty message is a message: a read returns 0, its source, and no error.
//   - A receiver that falls behind congests its port: the kernel refuses messages
//     to it (ENOBUFS) until it catches up. A write waits for that, or returns
//     ErrCongested at once if Config.Congestion says so. Other destinations of
//     the same socket go on.
//   - All destinations share the socket's send buffer, in which messages stay until the
//     peer's kernel has acknowledged them. A destination that is down
//     for good keeps its messages there, until no other can be written to:
//     Config.DestinationLimit bounds each one's share, CancelSentTo drops
//     what is queued.
//   - Close drops what the peer has not acknowledged. Flush waits for it.
//
// The methods that take or return a netip.AddrPort, and the batch forms,
// allocate nothing. Those for one direction may run beside those for the other and
// beside themselves.
//
// Errors are *net.OpError. Those of system calls hold an *os.SyscallError and
// answer errors.Is to the syscall.Errno, to one of this package's Err variables
// where one fits, and say what to do about it.
package rdssock
