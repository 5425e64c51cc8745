// Package nlconn asks the kernel questions over netlink(7).
package nlconn
