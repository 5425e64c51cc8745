package rdsinfo

import (
	"encoding/binary"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/abi"
)

var update = flag.Bool("update", false, "write the golden files anew")

// Captures are what getsockopt returned on two machines, both x86-64.
var captures = []string{"uml-6.1.176-tcp", "debian-6.1.192-rxe"}

var amd64 = abi.LayoutOf(8, 8, binary.LittleEndian)

// readCapture makes a snapshot of the files of a capture: the records, and an
// index with a line for each option.
func readCapture(t testing.TB, name string) *Snapshot {
	t.Helper()
	dir := filepath.Join("testdata", "captures", name)
	index, err := os.ReadFile(filepath.Join(dir, "index.txt"))
	if err != nil {
		t.Fatal(err)
	}
	s := &Snapshot{layout: amd64, raw: make(map[int]rawTable)}
	for line := range strings.Lines(string(index)) {
		var option, size, length int
		var errno uint
		if _, err := fmt.Sscanf(line, "%d elem %d len %d", &option, &size, &length); err == nil {
			records, err := os.ReadFile(filepath.Join(dir, fmt.Sprint(option, ".bin")))
			if err != nil || len(records) != length {
				t.Fatalf("%s: %d bytes, %v", strings.TrimSpace(line), len(records), err)
			}
			s.raw[option] = rawTable{records: records, size: size}
		} else if _, err := fmt.Sscanf(line, "%d err %d", &option, &errno); err == nil {
			s.raw[option] = rawTable{err: os.NewSyscallError("getsockopt", syscall.Errno(errno))}
		} else {
			t.Fatalf("%s: no line for an option: %q", name, line)
		}
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
