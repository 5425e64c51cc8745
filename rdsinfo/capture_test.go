package rdsinfo

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/abi"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Captures are stored snapshots of three machines, all x86-64.
var captures = []string{"uml-6.1.176-tcp", "debian-6.1.192-rxe", "rxe-6.1.192-dead-peer"}

var amd64 = abi.LayoutOf(8, 8, binary.LittleEndian)

func readCapture(t testing.TB, name string) *Snapshot {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	s := new(Snapshot)
	if err := json.Unmarshal(b, s); err != nil {
		t.Fatal(err)
	}
	return s
}

// tableRows calls the method that decodes t.
func tableRows(s *Snapshot, t Table) (rows any, err error) {
	switch t {
	case Counters:
		return s.Counters()
	case Connections:
		return s.Connections()
	case Sockets:
		return s.Sockets()
	case SendQueue, RetransmitQueue, ReceiveQueue:
		return s.Queue(t)
	case TCPSockets:
		return s.TCPSockets()
	case IBConnections:
		return s.IBConnections()
	case ConnectionPaths:
		return s.ConnectionPaths()
	}
	panic("no such table")
}

func TestCapturesDecodeToTheirGoldenFiles(t *testing.T) {
	for _, name := range captures {
		t.Run(name, func(t *testing.T) {
			s := readCapture(t, name)
			var got strings.Builder
			for _, table := range AllTables() {
				fmt.Fprintf(&got, "%s\n", table)
				rows, err := tableRows(s, table)
				if err != nil {
					fmt.Fprintf(&got, "\t%v\n", err)
				}
				for v := reflect.ValueOf(rows); v.Len() > 0; v = v.Slice(1, v.Len()) {
					fmt.Fprintf(&got, "\t%+v\n", v.Index(0))
				}
			}
			golden := filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

var equateAddrs = cmp.Comparer(func(a, b netip.Addr) bool { return a == b })
var equateAddrPorts = cmp.Comparer(func(a, b netip.AddrPort) bool { return a == b })

func lenOf(rows any) int { return reflect.ValueOf(rows).Len() }
