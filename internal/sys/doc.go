// Package sys makes the system calls that RDS sockets need, and is the only
// package of the module that does. It exists beside golang.org/x/sys/unix
// because that package's Recvmsg and SendmsgN add a byte to an empty message of
// any socket but a SOCK_DGRAM one, look up SO_PROTOCOL on each receive, and
// because its getsockopt drops the positive result that RDS_INFO_* returns.
//
// Nothing here waits: descriptors are non-blocking, and callers run a Msg or a
// Batch inside syscall.RawConn, which waits in the runtime's poller.
package sys
