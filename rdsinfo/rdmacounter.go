package rdsinfo

import (
	"context"

	"github.com/rdskit/rdskit/internal/rdmadev"
)

// An RDMACounter is a counter of a port of an RDMA device: of all that uses it, not of RDS alone. Which there are
// depends on the driver.
type RDMACounter struct {
	Device string `json:"device"`
	Port   int    `json:"port"`
	Name   string `json:"name"`
	Value  uint64 `json:"value"`
}

// RDMACounters lists the counters of the ports of all RDMA devices. Without RDMA in the kernel there are
// none.
func RDMACounters(ctx context.Context) ([]RDMACounter, error) { return askRDMA(ctx, rdmaCounters) }

func rdmaCounters(c *rdmadev.Client) ([]RDMACounter, error) {
	ports, err := c.Ports()
	if err != nil {
		return nil, err
	}
	var all []RDMACounter
	for _, p := range ports {
		counters, err := c.Counters(p)
		if err != nil {
			return nil, err
		}
		for _, counter := range counters {
			all = append(all, RDMACounter{p.Device, int(p.Number), counter.Name, counter.Value})
		}
	}
	return all, nil
}

// An RDMACounterDelta is an RDMACounter that grew, as it is then.
type RDMACounterDelta struct {
	RDMACounter
	Moved uint64 // by how much
}

// CompareRDMACounters returns what grew, in the order of later.
func CompareRDMACounters(earlier, later []RDMACounter) []RDMACounterDelta {
	type key struct {
		device, name string
		port         int
	}
	before := make(map[key]uint64, len(earlier))
	for _, c := range earlier {
		before[key{c.Device, c.Name, c.Port}] = c.Value
	}
	var moved []RDMACounterDelta
	for _, c := range later {
		if was, ok := before[key{c.Device, c.Name, c.Port}]; ok && c.Value > was {
			moved = append(moved, RDMACounterDelta{c, c.Value - was})
		}
	}
	return moved
}
