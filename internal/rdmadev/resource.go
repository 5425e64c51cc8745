package rdmadev

import "github.com/mdlayher/netlink"

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
