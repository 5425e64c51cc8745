package rdmadev

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/mdlayher/netlink"
)

// A Counter is one that a port has.
type Counter struct {
	Name  string // the driver's
	Value uint64
	// Hardware tells counters of the driver, which each names as it likes, from those that
	// the InfiniBand architecture defines.
	Hardware bool
}

// Counters lists the counters of a port: those of the architecture from sysfs, in
// alphabetical order, then those of the driver as it orders them. Values only grow
// unless someone resets them; port_xmit_data and port_rcv_data count four bytes each.
func (c *Client) Counters(p Port) ([]Counter, error) {
	counters, err := c.architectureCounters(p)
	if err != nil {
		return nil, fmt.Errorf("rdmadev: counters of %s port %d: %w", p.Device, p.Number, err)
	}
	data, err := c.ask(cmdStatGet, 0, func(ae *netlink.AttributeEncoder) {
		ae.Uint32(attrDevIndex, p.DeviceIndex)
		ae.Uint32(attrPortIndex, p.Number)
	})
	// Not every driver, and no kernel before 5.3, has them.
	if err != nil && !errors.Is(err, syscall.EINVAL) && !errors.Is(err, syscall.EOPNOTSUPP) {
		return nil, fmt.Errorf("rdmadev: counters of %s port %d: %w", p.Device, p.Number, err)
	}
	for _, b := range data {
		hardware, err := decodeCounters(b)
		if err != nil {
			return nil, fmt.Errorf("rdmadev: counters of %s port %d: %w", p.Device, p.Number, err)
		}
		counters = append(counters, hardware...)
	}
	return counters, nil
}

func (c *Client) architectureCounters(p Port) ([]Counter, error) {
	port := strconv.FormatUint(uint64(p.Number), 10)
	entries, err := os.ReadDir(c.class(p.Device, "ports", port, "counters"))
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // as of the soft devices
	}
	if err != nil {
		return nil, err
	}
	var counters []Counter
	for _, e := range entries {
		n, err := strconv.ParseUint(c.line(p.Device, "ports", port, "counters", e.Name()), 10, 64)
		if err != nil {
			continue // "N/A (no PMA)"
		}
		counters = append(counters, Counter{Name: e.Name(), Value: n})
	}
	slices.SortFunc(counters, func(a, b Counter) int { return strings.Compare(a.Name, b.Name) })
	return counters, nil
}

// decodeCounters decodes an answer to RDMA_NLDEV_CMD_STAT_GET (fill_stat_hwcounter_entry of nldev.c).
func decodeCounters(b []byte) ([]Counter, error) {
	var counters []Counter
	err := each(b, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != attrHWCounters {
			return
		}
		entries(ad, attrHWCounterEntry, func(ad *netlink.AttributeDecoder) {
			counter := Counter{Hardware: true}
			within(ad, func(ad *netlink.AttributeDecoder) {
				switch ad.Type() {
				case attrHWCounterName:
					counter.Name = ad.String()
				case attrHWCounterValue:
					counter.Value = ad.Uint64()
				}
			})
			counters = append(counters, counter)
		})
	})
	if err != nil {
		return nil, err
	}
	return counters, nil
}
