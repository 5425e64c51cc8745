package rdmadev

import (
	"os"
	"testing"
)

func FuzzDevice(f *testing.F)      { fuzz(f, "device") }
func FuzzPort(f *testing.F)        { fuzz(f, "port") }
func FuzzQueuePairs(f *testing.F)  { fuzz(f, "queuepairs") }
func FuzzConnections(f *testing.F) { fuzz(f, "connections") }
func FuzzRegions(f *testing.F)     { fuzz(f, "regions") }
func FuzzDriver(f *testing.F)      { fuzz(f, "chardev") }
func FuzzCounters(f *testing.F)    { fuzz(f, "counters") }

// fuzz feeds a decoder with variations of what kernels answered. It must not panic, and
// what it decodes can be printed.
func fuzz(f *testing.F, name string) {
	for _, file := range recorded(f) {
		if n, _ := decoderOf(file); n != name {
			continue
		}
		b, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if v, err := decoders[name](b); err == nil {
			text(v)
		}
	})
}

func FuzzRate(f *testing.F) {
	f.Add("100 Gb/sec (4X EDR)")
	f.Fuzz(func(t *testing.T, s string) {
		if r := parseRate(s); r.MbitPerSecond < 0 || r.Width < 0 {
			t.Errorf("%q: %+v", s, r)
		}
	})
}
