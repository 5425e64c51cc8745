// Package rdsinfo reads what the kernel's Reliable Datagram Sockets (AF_RDS)
// tell of themselves: counters, connections, sockets, queues, and what lies
// below the connections on TCP and InfiniBand.
//
// [Read] takes tables from the kernel into a [Snapshot], whose methods decode them. A
// Snapshot keeps the kernel's records as they came, so that it can be stored and decoded
// elsewhere. [Compare] tells what moved between two.
//
// [Collect] takes all tables, and what else there is to know about RDS on a host, into a [Bundle], a file
// to be looked at elsewhere. What lies around the tables can be asked for by itself, too: the programs that have
// sockets ([Processes]), the ways to peers ([Peers]), how TCP fares ([ReadTCPHealth]), and RDMA devices
// ([RDMAPorts], [RDMAConnections], [RDMACounters]).
//
// Kernels differ in what they report. A field that not all of them have is an
// [Optional]. A record longer than those known is decoded as far as it is known.
//
// The tables are those of one network namespace, but kernels before 6.1.190, and their like of other
// series, show the objects of all (CVE-2026-97476). Counters are those of
// the whole kernel always.
package rdsinfo
