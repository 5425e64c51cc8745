package route

import (
	"context"
	"fmt"
)

// A Link is a network interface.
type Link struct {
	Index int
	Name  string
	MTU   int // in bytes
	// Up says that the interface is switched on, Running that it can also carry
	// packets: that it has a carrier, and whatever else it stands on works.
	Up, Running bool
	Loopback    bool
}

// Links lists the interfaces of the network namespace. Of the configuration it looks at
// NetNS only. It needs netlink.
func Links(ctx context.Context, cfg *Config) ([]Link, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("route: links: %w", err)
	}
	return listLinks(ctx, cfg)
}
