package rdmadev

import (
	"context"

	"github.com/rdskit/rdskit/internal/nlconn"
)

// netlinkRDMA is NETLINK_RDMA of linux/netlink.h.
const netlinkRDMA = 20

func dial(ctx context.Context) (conn, error) { return nlconn.Dial(ctx, netlinkRDMA, 0) }
