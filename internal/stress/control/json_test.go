package control

import (
	"encoding/binary"
	"io"
	"math/bits"
	"net"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"net/netip"

	"github.com/rdskit/rdskit/internal/stress/wire"
)

// frameOf is s as C sends it, from a host of the byte order of this one or not.
func frameOf(s string, foreign bool) []byte {
	n := uint32(len(s))
	if foreign {
		n = bits.ReverseBytes32(n)
	}
	return append(binary.NativeEndian.AppendUint32(nil, n), s...)
}

func TestOptionsAreExchangedAsJSONWithHostsOfEitherByteOrder(t *testing.T) {
	for _, foreign := range []bool{false, true} {
		here, there := net.Pipe()
		defer here.Close()
		defer there.Close()
		type answer struct {
			asked byte
			frame []byte
		}
		answers := make(chan answer, 1)
		go func() {
			var a answer
			var b [1]byte
			io.ReadFull(there, b[:])
			a.asked = b[0]
			there.Write(frameOf(`{"req_depth": 9, "always_bursty": 1, "receive_addr6": "fd00::cut"}`, foreign))
			a.frame = make([]byte, 4)
			io.ReadFull(there, a.frame)
			n := binary.NativeEndian.Uint32(a.frame)
			if foreign {
				n = bits.ReverseBytes32(n)
			}
			body := make([]byte, min(n, 1<<16))
			io.ReadFull(there, body)
			a.frame = append(a.frame, body...)
			answers <- a
		}()
		c := NewConn(here)
		o := options()
		want := o
		want.Depth, want.Bursty = 9, true
		if err := c.TakeJSON(&o); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, o, cmpopts.EquateComparable(netip.Addr{})); diff != "" {
			t.Errorf("foreign %v (-want +got):\n%s", foreign, diff)
		}
		if err := c.GiveJSON(&o); err != nil {
			t.Fatal(err)
		}
		a := <-answers
		if a.asked != jsonByte || !strings.Contains(string(a.frame), `"req_depth":9,`) || !strings.Contains(string(a.frame), `"always_bursty":1`) {
			t.Errorf("foreign %v: asked by %#x, answered %q", foreign, a.asked, a.frame)
		}
	}
}

func TestHostileJSONIsRefused(t *testing.T) {
	length := func(n uint32) []byte { return binary.NativeEndian.AppendUint32(nil, n) }
	for _, tt := range []struct {
		name string
		in   []byte
	}{
		{"nothing", nil},
		{"half a length", []byte{1, 0}},
		{"no JSON behind the length", length(100)},
		{"half of the JSON", append(length(100), `{"req_depth": 1`...)},
		{"an empty one", length(0)},
		{"a negative length", length(1<<32 - 5)},
		{"a length of gigabytes in either byte order", length(0x7f00007f)},
		{"a little more than is permitted", length(1<<16 | 1)},
		{"all that is permitted, of nothing", frameOf(strings.Repeat("\x00", maxJSON), false)},
		{"deep brackets", frameOf(strings.Repeat("[", maxJSON), false)},
		{"deep objects", frameOf(strings.Repeat(`{"a":`, maxJSON/5), false)},
		{"numbers that do not fit", frameOf(`{"nr_tasks": 70000}`, false)},
		{"another type", frameOf(`["req_depth"]`, false)},
		{"a second object", frameOf(`{}{}`, false)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			here, there := net.Pipe()
			defer here.Close()
			go func() {
				io.ReadFull(there, make([]byte, 1))
				there.Write(tt.in)
				there.Close()
			}()
			o := options()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if err := NewConn(here).TakeJSON(&o); err == nil {
				t.Errorf("accepted as %+v", o)
			}
			runtime.ReadMemStats(&after)
			if grown := after.TotalAlloc - before.TotalAlloc; grown > 2<<20 {
				t.Errorf("%d bytes allocated", grown)
			}
		})
	}
}

func FuzzTakeJSON(f *testing.F) {
	f.Add(frameOf(`{"req_depth": 9}`, false))
	f.Add(frameOf(`{"req_depth": 9}`, true))
	f.Fuzz(func(t *testing.T, b []byte) {
		here, there := net.Pipe()
		go func() {
			io.ReadFull(there, make([]byte, 1))
			there.Write(b)
			there.Close()
		}()
		var o wire.Options
		NewConn(here).TakeJSON(&o)
		here.Close()
	})
}
