package info

import (
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdsinfo"
)

// later is a stored snapshot two seconds later, with parts of it replaced.
func later(t *testing.T, name string) *rdsinfo.Snapshot {
	t.Helper()
	s := readCapture(t, name)
	s.Time = s.Time.Add(2 * time.Second)
	return s
}

func TestAFrameShowsWhatNeedsAttentionFirst(t *testing.T) {
	f := NewFrame(readCapture(t, "uml-6.1.176-tcp"), later(t, "uml-6.1.176-tcp"), Filter{})
	golden(t, "frame.txt", strings.Join(f.Lines(), "\n")+"\n")
	golden(t, "screen.txt", strings.Join(f.Screen("rds-info watch", 140, 50), "\n")+"\n")
}

func TestAFrameOfTwoStatesHasTheirRates(t *testing.T) {
	f := NewFrame(readCapture(t, "uml-6.1.176-tcp"), later(t, "debian-6.1.192-rxe"), Filter{})
	f.ComparePorts([]rdsinfo.RDMACounter{{Device: "rxe0", Port: 1, Name: "sent_pkts", Value: 5}, {Device: "rxe0", Port: 1, Name: "rcvd_pkts", Value: 3}},
		[]rdsinfo.RDMACounter{{Device: "rxe0", Port: 1, Name: "sent_pkts", Value: 8}, {Device: "rxe0", Port: 1, Name: "rcvd_pkts", Value: 1003}})
	golden(t, "frame-rates.txt", strings.Join(f.Lines(), "\n")+"\n")
	golden(t, "screen-rates.txt", strings.Join(f.Screen("rds-info watch", 140, 100), "\n")+"\n")
}

func TestAScreenFitsItsTerminal(t *testing.T) {
	f := NewFrame(readCapture(t, "uml-6.1.176-tcp"), later(t, "uml-6.1.176-tcp"), Filter{})
	for _, size := range []struct{ width, height int }{{200, 50}, {40, 10}, {1, 1}, {0, 0}} {
		lines := f.Screen("rds-info watch", size.width, size.height)
		if len(lines) > max(size.height, 1) {
			t.Errorf("%d lines on a screen of %d", len(lines), size.height)
		}
		for _, line := range lines {
			if len(line) > size.width {
				t.Errorf("%q on a screen %d wide", line, size.width)
			}
		}
	}
}

func TestAFrameIsFiltered(t *testing.T) {
	f := NewFrame(readCapture(t, "uml-6.1.176-tcp"), later(t, "uml-6.1.176-tcp"), filter(t, "peer=10.9.0.99"))
	if len(f.Connections) != 1 || f.Connections[0].Remote.String() != "10.9.0.99" || !f.Connections[0].Stuck {
		t.Errorf("connections %+v", f.Connections)
	}
}

// More is unread than the receive buffer takes.
func TestASocketThatIsFullIsCongested(t *testing.T) {
	for _, tt := range []struct {
		bytes int64
		limit uint32
		want  bool
	}{{100, 100, false}, {101, 100, true}, {0, 0, false}} {
		if got := (SocketActivity{Unread: rdsinfo.Waiting{Bytes: tt.bytes}, Limit: tt.limit}).Congested(); got != tt.want {
			t.Errorf("%d bytes of %d: congested %v", tt.bytes, tt.limit, got)
		}
	}
}
