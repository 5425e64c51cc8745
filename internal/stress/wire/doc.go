// Package wire is what rds-stress says to its peer: the options that the active
// side sends over TCP before a run, and the header and payload of the messages
// of the run. It makes no system call.
//
// The bytes are those of the C rds-stress 2.0 and 2.3; all numbers are in network order
// unless said otherwise.
package wire
