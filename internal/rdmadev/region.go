package rdmadev

import "github.com/mdlayher/netlink"

// A MemoryRegion is memory that is registered with a device. The kernel registers what RDS
// offers to peers.
type MemoryRegion struct {
	Device string
	ID     uint32 // of the resource
	Length uint64 // in bytes
	// The keys, which the kernel tells only to who has CAP_NET_ADMIN; 0 otherwise.
	RemoteKey, LocalKey uint32
	Owner               Owner
}

// MemoryRegions lists the memory regions of all devices.
func (c *Client) MemoryRegions() ([]MemoryRegion, error) {
	return list(c, "memory regions", cmdResMRGet, decodeMemoryRegions)
}

// decodeMemoryRegions decodes an answer to RDMA_NLDEV_CMD_RES_MR_GET (fill_res_mr_entry of nldev.c).
func decodeMemoryRegions(b []byte) ([]MemoryRegion, error) {
	return decodeTable(b, attrResMR, attrResMREntry, func(m *MemoryRegion, device string, ad *netlink.AttributeDecoder) {
		m.Device = device
		switch ad.Type() {
		case attrResMRN:
			m.ID = ad.Uint32()
		case attrResMRLen:
			m.Length = ad.Uint64()
		case attrResRKey:
			m.RemoteKey = ad.Uint32()
		case attrResLKey:
			m.LocalKey = ad.Uint32()
		default:
			m.Owner.decode(ad)
		}
	})
}
