package rdmadev

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mdlayher/netlink"
)

// A Device is an RDMA device.
type Device struct {
	Index           uint32
	Name            string // such as mlx5_0
	Ports           uint32 // how many: they are numbered from 1
	Type            NodeType
	Protocol        string // ib, roce, iw, opa or usnic; empty on kernels that do not tell
	Firmware        string
	NodeGUID        GUID
	SystemImageGUID GUID
}

// A GUID is the identity of a device or system.
type GUID uint64

// String is the GUID in four groups, as ibstat(8) and sysfs have it.
func (g GUID) String() string {
	return fmt.Sprintf("%04x:%04x:%04x:%04x", uint16(g>>48), uint16(g>>32), uint16(g>>16), uint16(g))
}

// A NodeType is what a device is on its network: enum rdma_node_type of rdma/ib_verbs.h. RDS takes
// channel adapters only.
type NodeType uint8

// The node types that RDS knows apart.
const (
	ChannelAdapter NodeType = 1
	RNIC           NodeType = 4 // of iWARP
)

var nodeTypes = []string{1: "CA", "switch", "router", "RNIC", "usNIC", "usNIC UDP", "unspecified"}

// String is the type's name as rdma(8) prints it.
func (t NodeType) String() string {
	if s := name(nodeTypes, t); s != "" {
		return s
	}
	return fmt.Sprintf("NodeType(%d)", uint8(t))
}

// Devices lists the RDMA devices.
func (c *Client) Devices() ([]Device, error) {
	data, err := c.ask(cmdGet, netlink.Dump, nil)
	if err != nil {
		return nil, fmt.Errorf("rdmadev: devices: %w", err)
	}
	devices := make([]Device, len(data))
	for i, b := range data {
		if devices[i], err = decodeDevice(b); err != nil {
			return nil, fmt.Errorf("rdmadev: devices: %w", err)
		}
	}
	return devices, nil
}

// decodeDevice decodes an answer to RDMA_NLDEV_CMD_GET (fill_dev_info of nldev.c).
func decodeDevice(b []byte) (d Device, err error) {
	err = each(b, func(ad *netlink.AttributeDecoder) {
		switch ad.Type() {
		case attrDevIndex:
			d.Index = ad.Uint32()
		case attrDevName:
			d.Name = ad.String()
		case attrPortIndex:
			d.Ports = ad.Uint32()
		case attrDevNodeType:
			d.Type = NodeType(ad.Uint8())
		case attrDevProtocol:
			d.Protocol = ad.String()
		case attrFWVersion:
			d.Firmware = ad.String()
		case attrNodeGUID:
			d.NodeGUID = GUID(ad.Uint64())
		case attrSysImageGUID:
			d.SystemImageGUID = GUID(ad.Uint64())
		}
	})
	return d, err
}

// Driver is the module that drives the device: rdma_rxe, mlx5_ib. It is empty if the kernel
// does not tell, which takes ib_uverbs.
func (c *Client) Driver(d Device) (string, error) {
	// Without the module the question would load it.
	if _, err := os.Stat(filepath.Join(c.sys, "class/infiniband_verbs")); err == nil {
		data, err := c.ask(cmdGetChardev, 0, func(ae *netlink.AttributeEncoder) {
			ae.Uint32(attrDevIndex, d.Index)
			ae.String(attrChardevType, "uverbs")
		})
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return "", fmt.Errorf("rdmadev: driver of %s: %w", d.Name, err)
		}
		for _, b := range data {
			driver, err := decodeDriver(b)
			if err != nil {
				return "", fmt.Errorf("rdmadev: driver of %s: %w", d.Name, err)
			}
			if driver != "" {
				return driver, nil
			}
		}
	}
	// The driver of the device below, such as mlx5_core.
	link, err := os.Readlink(c.class(d.Name, "device/driver"))
	if err != nil {
		return "", nil
	}
	return filepath.Base(link), nil
}

// drivers are the modules behind enum rdma_driver_id of rdma/ib_user_ioctl_verbs.h.
var drivers = []string{
	1: "mlx5_ib", "mlx4_ib", "iw_cxgb3", "iw_cxgb4", "ib_mthca", "bnxt_re", "ocrdma", "iw_nes", "irdma", "vmw_pvrdma",
	"qedr", "hns_roce", "usnic_verbs", "rdma_rxe", "hfi1", "ib_qib", "efa", "siw", "erdma", "mana_ib",
}

// decodeDriver decodes an answer to RDMA_NLDEV_CMD_GET_CHARDEV.
func decodeDriver(b []byte) (driver string, err error) {
	err = each(b, func(ad *netlink.AttributeDecoder) {
		if ad.Type() == attrDriverID {
			driver = name(drivers, ad.Uint32())
		}
	})
	return driver, err
}

// line reads a file of sysfs that has one line; empty if it cannot be read.
func (c *Client) line(elem ...string) string {
	b, err := os.ReadFile(c.class(elem...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
