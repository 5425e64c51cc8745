// Package rdskit is the root of a toolkit for the Linux kernel's Reliable
// Datagram Sockets (AF_RDS). It holds no code of its own: see package rdssock
// for sockets and package cmsg for control messages.
package rdskit
