package info

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/rdsinfo"
)

func TestFiltersKeepTheRowsThatHaveAllTheirAttributes(t *testing.T) {
	for _, tt := range []struct {
		filter  string
		capture string
		table   rdsinfo.Table
		want    int
	}{
		{"peer=10.9.0.2", "uml-6.1.176-tcp", rdsinfo.Connections, 1},
		{"peer=::ffff:10.9.0.2", "uml-6.1.176-tcp", rdsinfo.Connections, 1},
		{"local=10.9.0.0/24", "uml-6.1.176-tcp", rdsinfo.Connections, 3},
		{"local=::ffff:10.9.0.0/120", "uml-6.1.176-tcp", rdsinfo.Connections, 3},
		{"state=connecting", "uml-6.1.176-tcp", rdsinfo.Connections, 2},
		{"state=connecting,peer=fd00::99", "uml-6.1.176-tcp", rdsinfo.Connections, 1},
		{"transport=loopback", "uml-6.1.176-tcp", rdsinfo.Connections, 1},
		{"port=6000", "uml-6.1.176-tcp", rdsinfo.Sockets, 2},
		{"peer=10.9.0.2", "uml-6.1.176-tcp", rdsinfo.Sockets, 1},
		{"peer=0.0.0.0", "uml-6.1.176-tcp", rdsinfo.Sockets, 0},
		{"port=6001", "uml-6.1.176-tcp", rdsinfo.SendQueue, 1},
		{"peer=10.9.0.99", "uml-6.1.176-tcp", rdsinfo.TCPSockets, 1},
		{"transport=tcp", "uml-6.1.176-tcp", rdsinfo.TCPSockets, 34},
		{"tos=3", "debian-6.1.192-rxe", rdsinfo.Connections, 2},
		{"tos=3", "debian-6.1.192-rxe", rdsinfo.IBConnections, 2},
		{"state=up", "debian-6.1.192-rxe", rdsinfo.Sockets, 0}, // which have no state
		{"peer=10.8.0.1", "debian-6.1.192-rxe", rdsinfo.Counters, 0},
	} {
		t.Run(fmt.Sprintf("%s of %s", tt.filter, tt.table), func(t *testing.T) {
			j := JSON{Filter: filter(t, tt.filter)}
			got := 0
			if err := j.Each(readCapture(t, tt.capture), tt.table, func(any) { got++ }); err != nil {
				t.Fatal(err)
			}
			if got != tt.want {
				t.Errorf("%d rows, want %d", got, tt.want)
			}
		})
	}
}

func TestWhatIsNoFilterIsRefusedWithTheWayOut(t *testing.T) {
	for text, want := range map[string]string{
		"":               `want KEY=VALUE, with the key one of local, peer, port, tos, transport and state`,
		"colour=red":     `want KEY=VALUE, with the key one of local, peer, port, tos, transport and state`,
		"peer":           `want an address or a prefix`,
		"peer=host":      `want an address or a prefix`,
		"port=65536":     `want a number from 0 to 65535`,
		"tos=256":        `want a number from 0 to 255`,
		"tos=-1":         `want a number from 0 to 255`,
		"transport=udp":  `want infiniband, tcp or loopback`,
		"state=stuck":    `want up, connecting, down or error`,
		"tos=1,port=x":   `"port=x": want a number from 0 to 65535`,
		"local=1.2.3.4,": `"": want KEY=VALUE, with the key one of local, peer, port, tos, transport and state`,
	} {
		_, err := ParseFilter(text)
		if err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func TestFiltersPrintAsTheyWereGiven(t *testing.T) {
	f := filter(t, "peer=10.0.0.1,tos=3").And(filter(t, "state=up"))
	if diff := cmp.Diff("peer=10.0.0.1,tos=3,state=up", f.String()); diff != "" {
		t.Error(diff)
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, text := range []string{"peer=10.9.0.2,tos=3", "local=fd00::/64", "port=1,transport=tcp,state=up"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ParseFilter(text)
		if err != nil {
			return
		}
		if g.String() != text || strings.Count(text, ",") != len(g.terms)-1 {
			t.Errorf("%q was taken as %q", text, g)
		}
		g.keeps(attributes{})
	})
}
