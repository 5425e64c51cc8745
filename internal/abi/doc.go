// Package abi holds the numbers and record layouts of the Linux kernel's RDS
// interface: sockets, options, control messages and the RDS_INFO tables.
//
// Constants keep the kernel's spelling. Two families of kernels number the
// interface differently, see [Dialect]: a name without a prefix is mainline's
// and, unless a name with the prefix UEK_ exists beside it, Oracle UEK's too.
//
// The package is pure. It makes no system call, imports no system package, and
// means the same Linux layouts on whatever system it is compiled for. Integers
// in records are in the byte order of the kernel, which is the program's own;
// addresses and ports are in network order. Records are read and written by
// offset, never by laying a Go struct over them.
//
// Sources: include/uapi/linux/rds.h and net/rds of Linux 6.1, and for UEK the
// copy of its header in rds-tools 2.3.11 (include/rds.h).
package abi
