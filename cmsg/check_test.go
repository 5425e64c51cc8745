package cmsg

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/abi"
)

// must returns what an appending method returned without error.
func must(b []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return b
}

func TestCheck(t *testing.T) {
	// Each token appends one message to a buffer.
	args := RDMAArgs{Key: key, Remote: Iovec{Len: 1 << 20}, LocalAddr: 1, LocalCount: 1024}
	tokens := map[string]func(Encoder, []byte) []byte{
		"args": func(e Encoder, b []byte) []byte { return e.AppendRDMAArgs(b, args) },
		"args-without-local": func(e Encoder, b []byte) []byte {
			a := args
			a.LocalCount = 0
			return e.AppendRDMAArgs(b, a)
		},
		"args-with-1025-local": func(e Encoder, b []byte) []byte {
			a := args
			a.LocalCount++
			return e.AppendRDMAArgs(b, a)
		},
		"args-over-1MiB": func(e Encoder, b []byte) []byte {
			a := args
			a.Remote.Len++
			return e.AppendRDMAArgs(b, a)
		},
		"dest": func(e Encoder, b []byte) []byte { return e.AppendRDMADest(b, key) },
		"map":  func(e Encoder, b []byte) []byte { return e.AppendRDMAMap(b, RDMAMap{Vec: Iovec{1 << 20, 4096}}) },
		"map-of-nothing": func(e Encoder, b []byte) []byte {
			return e.AppendRDMAMap(b, RDMAMap{Vec: Iovec{1 << 20, 0}})
		},
		"map-that-wraps": func(e Encoder, b []byte) []byte {
			return e.AppendRDMAMap(b, RDMAMap{Vec: Iovec{1<<64 - 10, 20}})
		},
		"map-of-4GiB": func(e Encoder, b []byte) []byte {
			return e.AppendRDMAMap(b, RDMAMap{Vec: Iovec{1, 1 << 32}})
		},
		"atomic": func(e Encoder, b []byte) []byte { return must(e.AppendAtomic(b, atomicOf(AtomicFetchAdd))) },
		"masked": func(e Encoder, b []byte) []byte {
			return must(Encoder{}.AppendAtomic(b, atomicOf(AtomicMaskedFetchAdd)))
		},
		"atomic-to-odd-address": func(e Encoder, b []byte) []byte {
			a := atomicOf(AtomicFetchAdd)
			a.LocalAddr++
			return must(e.AppendAtomic(b, a))
		},
		"async":  func(e Encoder, b []byte) []byte { return must(Encoder{Dialect: UEK}.AppendAsyncSend(b, AsyncSend{})) },
		"cookie": func(e Encoder, b []byte) []byte { return must(Encoder{}.AppendZerocopyCookie(b, 1)) },
		"status": func(e Encoder, b []byte) []byte { return e.AppendRDMAStatus(b, RDMAStatus{}) },
		"type-99": func(e Encoder, b []byte) []byte {
			return appendHeader(b, e.layout, abi.SOL_RDS, 99, 0)
		},
		"other-level": func(e Encoder, b []byte) []byte { return appendHeader(b, e.layout, 41, 1, 0) },
		"short-dest": func(e Encoder, b []byte) []byte {
			return append(appendHeader(b, e.layout, abi.SOL_RDS, abi.RDS_CMSG_RDMA_DEST, 4), 1, 2, 3, 4, 5, 6, 7, 8)
		},
		"header-of-zeros": func(e Encoder, b []byte) []byte {
			return append(b, make([]byte, headerSize(e.layout))...)
		},
		"length-beyond-the-end": func(e Encoder, b []byte) []byte {
			return appendHeader(b, e.layout, abi.SOL_RDS, abi.RDS_CMSG_RDMA_DEST, 8)
		},
		"stray-bytes": func(e Encoder, b []byte) []byte { return append(b, 1, 2, 3) },
	}
	tests := []struct {
		messages string
		d        Dialect
		want     string // part of the error, "" for none
		err      error
	}{
		{"", Mainline, "", nil},
		{"args", Mainline, "", nil},
		{"args atomic", Mainline, "", nil},
		{"atomic args", UEK, "", nil},
		{"dest cookie", Mainline, "", nil},
		{"map cookie other-level", Mainline, "", nil},
		{"other-level", UEK, "", nil},
		{"dest async", UEK, "", nil},
		{"masked", Mainline, "", nil},
		{"dest stray-bytes", Mainline, "", nil},

		{"args args", Mainline, "a second one", ErrRefused},
		{"atomic args masked", Mainline, "a second one", ErrRefused},
		{"dest dest", Mainline, "a second RDMA dest or RDMA map", ErrRefused},
		{"map other-level dest", UEK, "a second RDMA dest or RDMA map", ErrRefused},
		{"args dest", Mainline, "do not go with", ErrRefused},
		{"map args", Mainline, "do not go with", ErrRefused},
		{"atomic cookie", Mainline, "do not go with", ErrRefused},
		{"async atomic", UEK, "do not go with", ErrRefused},

		{"args-without-local", Mainline, "0 local elements, 1 to 1024 may be", ErrRefused},
		{"args-with-1025-local", Mainline, "1025 local elements", ErrRefused},
		{"args-over-1MiB", Mainline, "1048577 bytes of remote memory, at most 1048576", ErrRefused},
		{"atomic-to-odd-address", Mainline, "local address 0x7f0000002001 is no multiple of 8", ErrRefused},
		{"map-of-nothing", Mainline, "0 bytes at 0x100000", ErrRefused},
		{"map-that-wraps", Mainline, "20 bytes at 0xfffffffffffffff6", ErrRefused},
		{"map-of-4GiB", Mainline, "no range of memory", ErrRefused},

		{"status", Mainline, "mainline kernels take no such message in a send", ErrRefused},
		{"type-99", Mainline, "no such message", ErrRefused},
		{"async", Mainline, "mainline kernels take no such message", ErrRefused},
		{"cookie", UEK, "UEK kernels take no such message", ErrRefused},
		{"masked", UEK, "UEK kernels take no such message", ErrRefused},

		{"dest short-dest", Mainline, "malformed", ErrMalformed},
		{"dest length-beyond-the-end", Mainline, "truncated", ErrTruncated},
		{"header-of-zeros dest", Mainline, "malformed", ErrMalformed},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprintf("%v %s", tt.d, tt.messages), func(t *testing.T) {
			var oob []byte
			for _, token := range strings.Fields(tt.messages) {
				oob = tokens[token](Encoder{Dialect: tt.d}, oob)
			}
			err := Check(tt.d, oob)
			if tt.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, tt.err) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			var pe *ParseError
			if !errors.As(err, &pe) {
				t.Errorf("%T is no ParseError", err)
			}
		})
	}
}
