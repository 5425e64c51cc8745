package rdma

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"slices"
	"syscall"
	"testing"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
)

// noSocket is a descriptor of nothing.
type noSocket struct{ syscall.RawConn }

func (noSocket) Control(f func(fd uintptr)) error { f(0); return nil }

// A kernel that registers memory by itself is asked to, with the destination where
// it knows that. None at hand does for InfiniBand.
func TestMemoryIsRegisteredWithoutAMessageWhereTheKernelDoes(t *testing.T) {
	region, err := Allocate(3 * MaxOperation)
	if err != nil {
		t.Fatal(err)
	}
	defer region.Close(t.Context())
	reg := &Registration{Memory: region.Slice(4096, 2*MaxOperation), Invalidate: true}
	peer := netip.MustParseAddrPort("10.8.0.2:4000")
	for _, test := range []struct {
		name    string
		refused []int // options that the kernel does not know
		want    []int // what it is asked
		err     error
	}{
		{"with a destination", nil, []int{abi.RDS_GET_MR_FOR_DEST}, nil},
		{"without", []int{abi.RDS_GET_MR_FOR_DEST}, []int{abi.RDS_GET_MR_FOR_DEST, abi.RDS_GET_MR}, nil},
		{"neither", []int{abi.RDS_GET_MR_FOR_DEST, abi.RDS_GET_MR}, []int{abi.RDS_GET_MR_FOR_DEST, abi.RDS_GET_MR}, syscall.ENOPROTOOPT},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &Conn{raw: noSocket{}}
			c.option.init()
			f, err := c.frames.get()
			if err != nil {
				t.Fatal(err)
			}
			c.frames.put(f) // it is the one that is used
			defer c.frames.close()
			const key = cmsg.Key(0x1234_0000_5678)
			var asked []int
			c.option.run = func(uintptr) {
				o := &c.option
				asked = append(asked, o.name)
				if slices.Contains(test.refused, o.name) {
					o.errno = syscall.ENOPROTOOPT
					return
				}
				o.errno = 0
				vec := reg.Memory.Slice(0, MaxOperation).iovec()
				args := abi.GetMRArgs{Vec: abi.Iovec{Addr: vec.Addr, Bytes: vec.Len}, CookieAddr: f.keyAddr(), Flags: uint64(reg.flags())}
				want := args.Append(nil, abi.Layout{})
				if o.name == abi.RDS_GET_MR_FOR_DEST {
					want = abi.GetMRForDestArgs{Dest: peer, GetMRArgs: args}.Append(nil, abi.Layout{})
				}
				if !bytes.Equal(o.arg, want) {
					t.Errorf("option %d has %x, want %x", o.name, o.arg, want)
				}
				binary.NativeEndian.PutUint64(f[frameKey:], uint64(key))
			}
			got, err := c.getMR(reg, reg.Memory.Slice(0, MaxOperation), peer)
			if !errors.Is(err, test.err) || test.err == nil && (err != nil || got != key) {
				t.Errorf("key %v, %v", got, err)
			}
			if !slices.Equal(asked, test.want) {
				t.Errorf("asked for options %v, want %v", asked, test.want)
			}
		})
	}
}
