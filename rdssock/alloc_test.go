//go:build !race

package rdssock_test

import (
	"testing"

	"github.com/rdskit/rdskit/rdssock"
)

// Not with the race detector: a sync.Pool then drops some of what it is given.
func TestSteadyStateAllocatesNothing(t *testing.T) {
	eachLink(t, func(t *testing.T, l link) {
		a, b := l.pair(t, &rdssock.Config{Timestamps: true})
		buf, oob := make([]byte, 64), make([]byte, 256)
		out := []rdssock.Message{{Data: buf, Addr: addr(b)}, {Data: buf, Addr: addr(b)}}
		in := []rdssock.Message{{Data: make([]byte, 64), Control: make([]byte, 256)}, {Data: make([]byte, 64)}}
		dst := addr(b)
		for _, tt := range []struct {
			name string
			turn func() error
		}{
			{"AddrPort", func() error {
				if _, err := a.WriteToAddrPort(buf, dst); err != nil {
					return err
				}
				_, _, err := b.ReadFromAddrPort(buf)
				return err
			}},
			{"Msg", func() error {
				if _, _, err := a.WriteMsgAddrPort(buf, nil, dst); err != nil {
					return err
				}
				_, _, _, _, err := b.ReadMsgAddrPort(buf, oob)
				return err
			}},
			{"Try", func() error {
				if _, err := a.TryWriteToAddrPort(buf, dst); err != nil {
					return err
				}
				for {
					if _, _, ok, err := b.TryReadFromAddrPort(buf); ok || err != nil {
						return err
					}
				}
			}},
			{"Batch", func() error {
				if _, err := a.WriteBatch(out); err != nil {
					return err
				}
				for n := 0; n < len(out); {
					got, err := b.ReadBatch(in)
					if err != nil {
						return err
					}
					n += got
				}
				return nil
			}},
		} {
			t.Run(tt.name, func(t *testing.T) {
				if n := testing.AllocsPerRun(200, func() {
					if err := tt.turn(); err != nil {
						t.Fatal(err)
					}
				}); n != 0 {
					t.Errorf("%v allocations for a send and a receive", n)
				}
			})
		}
	})
}

func BenchmarkRoundTrip(b *testing.B) {
	for _, l := range links {
		b.Run(l.name, func(b *testing.B) {
			needLab(b, l.hosts)
			x, y := l.pair(b, nil)
			buf := make([]byte, 64)
			done := make(chan error, 1)
			go func() {
				buf := make([]byte, 64)
				for {
					n, src, err := y.ReadFromAddrPort(buf)
					if err == nil {
						_, err = y.WriteToAddrPort(buf[:n], src)
					}
					if err != nil {
						done <- err
						return
					}
				}
			}()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := x.WriteToAddrPort(buf, addr(y)); err != nil {
					b.Fatal(err)
				}
				if _, _, err := x.ReadFromAddrPort(buf); err != nil {
					b.Fatal(err)
				}
			}
			y.Close()
			<-done
		})
	}
}
