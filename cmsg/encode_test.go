package cmsg

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"
)

func TestEncoderRefuses(t *testing.T) {
	masked := atomicOf(AtomicMaskedFetchAdd)
	stray := atomicOf(AtomicFetchAdd)
	stray.NoCarryMask = 1
	unmasked := atomicOf(AtomicCompareSwap)
	unmasked.SwapMask = 1
	tests := []struct {
		name        string
		d           Dialect
		append      func(Encoder, []byte) ([]byte, error)
		unsupported bool
		text        string
	}{
		{"a zerocopy cookie on UEK", UEK, func(e Encoder, b []byte) ([]byte, error) { return e.AppendZerocopyCookie(b, 1) }, true,
			"cmsg: UEK kernels have no zerocopy cookie: unsupported operation"},
		{"a zerocopy completion on UEK", UEK, func(e Encoder, b []byte) ([]byte, error) {
			return e.AppendZerocopyCompletion(b, ZerocopyCompletion{})
		}, true, "UEK kernels have no zerocopy completion"},
		{"async send on mainline", Mainline, func(e Encoder, b []byte) ([]byte, error) { return e.AppendAsyncSend(b, AsyncSend{}) }, true,
			"cmsg: mainline kernels have no async send: unsupported operation"},
		{"INQ on mainline", Mainline, func(e Encoder, b []byte) ([]byte, error) { return e.AppendINQ(b, 1) }, true, "mainline kernels have no INQ"},
		{"a masked atomic on UEK", UEK, func(e Encoder, b []byte) ([]byte, error) { return e.AppendAtomic(b, masked) }, true,
			"UEK kernels have no masked fetch-add"},
		{"an unknown atomic", Mainline, func(e Encoder, b []byte) ([]byte, error) { return e.AppendAtomic(b, Atomic{Op: 4}) }, false,
			"cmsg: atomic 4 is no operation"},
		{"a mask for an unmasked fetch-add", Mainline, func(e Encoder, b []byte) ([]byte, error) { return e.AppendAtomic(b, stray) }, false,
			"cmsg: fetch-add with an operand of another operation"},
		{"a mask for an unmasked compare-swap", UEK, func(e Encoder, b []byte) ([]byte, error) { return e.AppendAtomic(b, unmasked) }, false,
			"cmsg: compare-swap with an operand of another operation"},
		{"nine zerocopy cookies", Mainline, func(e Encoder, b []byte) ([]byte, error) {
			return e.AppendZerocopyCompletion(b, ZerocopyCompletion{N: 9})
		}, false, "cmsg: zerocopy completion of 9 cookies: 0 to 8 fit"},
		{"fewer than no cookies", Mainline, func(e Encoder, b []byte) ([]byte, error) {
			return e.AppendZerocopyCompletion(b, ZerocopyCompletion{N: -1})
		}, false, "-1 cookies"},
		{"four latencies", Mainline, func(e Encoder, b []byte) ([]byte, error) {
			return e.AppendRXPathLatency(b, RXPathLatency{N: 4})
		}, false, "cmsg: receive-path latency of 4 points: 0 to 3 fit"},
		{"fewer than no latencies", Mainline, func(e Encoder, b []byte) ([]byte, error) {
			return e.AppendRXPathLatency(b, RXPathLatency{N: -1})
		}, false, "-1 points"},
		{"a negative INQ", UEK, func(e Encoder, b []byte) ([]byte, error) { return e.AppendINQ(b, -1) }, false, "cmsg: INQ of -1 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b, err := tt.append(Encoder{Dialect: tt.d}, []byte("before"))
			if err == nil || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("error %v, want %q", err, tt.text)
			}
			if errors.Is(err, errors.ErrUnsupported) != tt.unsupported {
				t.Errorf("errors.ErrUnsupported: %t", !tt.unsupported)
			}
			if string(b) != "before" {
				t.Errorf("the buffer became %q", b)
			}
		})
	}
}

func TestINQOfTheGreatestLength(t *testing.T) {
	e := Encoder{Dialect: UEK}
	oob, err := e.AppendINQ(nil, math.MaxInt32)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := one(t, Parse(UEK, oob)).INQ(); n != math.MaxInt32 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// What a fixed array holds beyond its count must not leave the process.
func TestUncountedElementsAreNotSent(t *testing.T) {
	var full ZerocopyCompletion
	var traces RXPathLatency
	for i := range full.Cookies {
		full.Cookies[i] = 0xbebebebe
	}
	for i := range traces.Traces {
		traces.Traces[i] = RXTrace{Point: 0xbe, Elapsed: 0xbebebebe}
	}
	e := Encoder{}
	b, err := e.AppendZerocopyCompletion(nil, full)
	if err != nil {
		t.Fatal(err)
	}
	if b, err = e.AppendRXPathLatency(b, traces); err != nil {
		t.Fatal(err)
	}
	if bytes.IndexByte(b, 0xbe) >= 0 {
		t.Errorf("left in %x", b)
	}
}

func TestAppendingToABufferWithRoomAllocatesNothing(t *testing.T) {
	status := RDMAStatus{Token: 1}
	atomic := atomicOf(AtomicMaskedCompareSwap)
	var completion ZerocopyCompletion
	var latency RXPathLatency
	buf := make([]byte, 0, 1024)
	m, u := Encoder{}, Encoder{Dialect: UEK}
	if n := testing.AllocsPerRun(100, func() {
		b := buf
		b = m.AppendRDMAArgs(b, RDMAArgs{Key: key})
		b = m.AppendRDMADest(b, key)
		b = m.AppendRDMAMap(b, RDMAMap{})
		b = m.AppendRDMAStatus(b, status)
		b = m.AppendCongestionUpdate(b, 1)
		b = m.AppendIovec(b, Iovec{})
		b, err1 := m.AppendAtomic(b, atomic)
		b, err2 := m.AppendZerocopyCookie(b, 1)
		b, err3 := m.AppendZerocopyCompletion(b, completion)
		b, err4 := m.AppendRXPathLatency(b, latency)
		b, err5 := u.AppendAsyncSend(b, AsyncSend{})
		b, err6 := u.AppendINQ(b, 1)
		if err := errors.Join(err1, err2, err3, err4, err5, err6); err != nil {
			t.Error(err)
		}
		if &b[0] != &buf[:1][0] {
			t.Error("the buffer was too small")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
