package rdma

import (
	"context"
	"encoding/binary"
	"net/netip"
	"slices"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/rdmadev"
	"github.com/rdskit/rdskit/rdssock"
)

const opAtomic = "rdma-atomic"

// FetchAdd adds to 8 bytes of the peer's memory, in the program's byte order,
// waits, and returns what they were before. op names them, and its Local is one
// Slice of 8 bytes at a multiple of 8 for what they were. A region that the kernel
// registers on mainline permits no atomic operation
// (net/rds/ib_frmr.c:rds_ib_post_reg_frmr), unless its pages are registered on
// demand.
//
// The kernel asks the device for a masked operation, whichever it is told
// (net/rds/ib_send.c:rds_ib_xmit_atomic). A device that has none fails when the
// operation is posted, of which nobody is told, and everything behind it on the
// connection waits for ever. So the error is ErrAtomics unless the device is known
// to have them or Config.Atomics insists. Not yet seen to succeed on a kernel.
// Cancel gives back the operations that are blocked, but the connection stays so
// until it breaks.
func (c *Conn) FetchAdd(ctx context.Context, op *Operation, add uint64) (old uint64, err error) {
	return c.atomic(ctx, op, cmsg.Atomic{Op: cmsg.AtomicFetchAdd, Add: add})
}

// CompareSwap stores swap if the bytes equal compare. See [Conn.FetchAdd].
func (c *Conn) CompareSwap(ctx context.Context, op *Operation, compare, swap uint64) (old uint64, err error) {
	return c.atomic(ctx, op, cmsg.Atomic{Op: cmsg.AtomicCompareSwap, Compare: compare, Swap: swap})
}

// MaskedFetchAdd adds without carrying out of the bits of noCarry. See [Conn.FetchAdd].
func (c *Conn) MaskedFetchAdd(ctx context.Context, op *Operation, add, noCarry uint64) (old uint64, err error) {
	return c.atomic(ctx, op, cmsg.Atomic{Op: cmsg.AtomicMaskedFetchAdd, Add: add, NoCarryMask: noCarry})
}

// MaskedCompareSwap compares the bits of compareMask and stores those of swapMask.
// See [Conn.FetchAdd].
func (c *Conn) MaskedCompareSwap(ctx context.Context, op *Operation, compare, swap, compareMask, swapMask uint64) (old uint64, err error) {
	return c.atomic(ctx, op, cmsg.Atomic{
		Op: cmsg.AtomicMaskedCompareSwap, Compare: compare, Swap: swap, CompareMask: compareMask, SwapMask: swapMask,
	})
}

func (c *Conn) atomic(ctx context.Context, op *Operation, a cmsg.Atomic) (old uint64, err error) {
	err = checkAtomic(op)
	if err == nil {
		err = c.checkDevice(ctx)
	}
	if err != nil {
		return 0, c.opError(opAtomic, op.Peer, err)
	}
	a.Key, a.RemoteAddr = op.Key, op.Offset
	a.Flags = cmsg.FlagNotifyMe
	err = c.launch(ctx, op, opAtomic, func(_ frame, token uint64) (err error) {
		a.LocalAddr, a.Token = op.Local[0].iovec().Addr, token
		op.control, err = c.encoder.AppendAtomic(op.control[:0], a)
		return err
	})
	if err != nil {
		return 0, c.opError(opAtomic, op.Peer, explainOperation(err))
	}
	if err := op.Wait(ctx); err != nil {
		return 0, err
	}
	var b [8]byte
	if _, err := op.Local[0].region.ReadAt(b[:], int64(op.Local[0].off)); err != nil {
		return 0, c.opError(opAtomic, op.Peer, err)
	}
	return binary.NativeEndian.Uint64(b[:]), nil
}

// maskedAtomics are the drivers that are known to take masked atomic operations
// (drivers/infiniband/hw/mlx4/qp.c:_mlx4_ib_post_send).
var maskedAtomics = []string{"mlx4_ib", "mlx4_core"}

// device returns the name and the driver of the device behind an address.
func device(ctx context.Context, addr netip.Addr) (name, driver string, err error) {
	client, err := rdmadev.Dial(ctx)
	if err != nil {
		return "", "", err
	}
	defer client.Close()
	port, _, err := client.Carrier(addr)
	if err != nil {
		return "", "", err
	}
	driver, err = client.Driver(rdmadev.Device{Name: port.Device, Index: port.DeviceIndex})
	return port.Device, driver, err
}

// checkDevice says whether the Conn's device is not known to have masked atomics.
func (c *Conn) checkDevice(ctx context.Context) error {
	if c.atomics {
		return nil
	}
	const otherwise = "and without them one would block the connection for good (Config.Atomics insists)"
	name, driver, err := device(ctx, c.sock.LocalAddr().(rdssock.Addr).Addr())
	switch {
	case err != nil:
		return refuse(ErrAtomics, "the device is not known (%v), so neither is whether it has masked ones, %s", err, otherwise)
	case !slices.Contains(maskedAtomics, driver):
		return refuse(ErrAtomics, "the device %s, driver %q, is not known to have masked ones, %s", name, driver, otherwise)
	}
	return nil
}

func checkAtomic(op *Operation) error {
	size, err := op.check()
	switch {
	case err != nil:
		return err
	case len(op.Local) != 1 || size != 8 || op.Local[0].off%8 != 0:
		return refuse(ErrRange, "an atomic operation has 8 bytes of local memory at a multiple of 8")
	case op.Offset%8 != 0:
		return refuse(ErrRange, "an atomic operation at offset %d, which is no multiple of 8", op.Offset)
	}
	return nil
}
