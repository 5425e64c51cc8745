package rdmadev

import (
	"fmt"

	"github.com/mdlayher/netlink"
)

// An Owner is who made a resource: a process, or a module of the kernel.
type Owner struct {
	PID    uint32 // 0 for the kernel
	Module string // empty for a process
}

// rdsModule is the name under which the kernel keeps what RDS made.
const rdsModule = "rds_rdma"

// RDS tells whether the resource belongs to the kernel's RDS.
func (o Owner) RDS() bool { return o.PID == 0 && o.Module == rdsModule }

// decode takes the attribute if it is about the owner.
func (o *Owner) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case attrResPID:
		o.PID = ad.Uint32()
	case attrResKernName:
		o.Module = ad.String()
	}
}

// Resources is how many resources of each kind there are on a device, whoever made them.
type Resources struct {
	Device        string
	DeviceIndex   uint32
	QueuePairs    uint64
	ConnectionIDs uint64
	MemoryRegions uint64
	// All is the kernel's own list: pd, cq, qp, cm_id, mr, ctx, srq, and what later kernels add.
	All map[string]uint64
}

// Resources lists how many resources each device has.
func (c *Client) Resources() ([]Resources, error) {
	data, err := c.ask(cmdResGet, netlink.Dump, nil)
	if err != nil {
		return nil, fmt.Errorf("rdmadev: resources: %w", err)
	}
	all := make([]Resources, len(data))
	for i, b := range data {
		if all[i], err = decodeResources(b); err != nil {
			return nil, fmt.Errorf("rdmadev: resources: %w", err)
		}
	}
	return all, nil
}

// decodeResources decodes an answer to RDMA_NLDEV_CMD_RES_GET (fill_res_info of nldev.c).
func decodeResources(b []byte) (r Resources, err error) {
	r.All = map[string]uint64{}
	err = each(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrDevIndex:
			r.DeviceIndex = ad.Uint32()
		case attrDevName:
			r.Device = ad.String()
		case attrSummary:
			entries(ad, attrSummaryEntry, func(ad *netlink.AttributeDecoder) {
				name, n := "", uint64(0)
				within(ad, func(ad *netlink.AttributeDecoder) {
					switch ad.Type() {
					case attrSummaryName:
						name = ad.String()
					case attrSummaryCurr:
						n = ad.Uint64()
					}
				})
				r.All[name] = n
			})
		}
	})
	r.QueuePairs, r.ConnectionIDs, r.MemoryRegions = r.All["qp"], r.All["cm_id"], r.All["mr"]
	return r, err
}

// entries hands the entries of a nested table to f.
func entries(ad *netlink.AttributeDecoder, entry uint16, f func(ad *netlink.AttributeDecoder)) {
	within(ad, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == entry {
			f(ad)
		}
	})
}

// decodeTable decodes a dump of resources: the device, and a table with an entry for each.
func decodeTable[T any](b []byte, table, entry uint16, decode func(item *T, device string, ad *netlink.AttributeDecoder)) ([]T, error) {
	var device string
	var items []T
	err := each(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrDevName:
			device = ad.String()
		case table:
			entries(ad, entry, func(ad *netlink.AttributeDecoder) {
				var item T
				within(ad, func(ad *netlink.AttributeDecoder) { decode(&item, device, ad) })
				items = append(items, item)
			})
		}
	})
	if err != nil {
		return nil, err
	}
	return items, nil
}
