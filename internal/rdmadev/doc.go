// Package rdmadev tells what RDMA devices the host has: their ports, GIDs, counters,
// and the queue pairs, connection ids and memory regions that RDS has on them.
//
// It asks the kernel by RDMA netlink (include/uapi/rdma/rdma_netlink.h,
// drivers/infiniband/core/nldev.c), as rdma(8) of iproute2 does, and looks into
// /sys/class/infiniband for what that lacks: GIDs, link layers, rates. It changes nothing
// and loads no module.
//
// The kernel shows the devices of the caller's network namespace. Unless the administrator
// chose otherwise (rdma system set netns exclusive) those are all devices, in each namespace.
package rdmadev
