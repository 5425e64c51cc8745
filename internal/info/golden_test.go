package info

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/rdsinfo"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	name = filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s, -want +got:\n%s", name, diff)
	}
}

func jsonLines(t *testing.T, records []any) string {
	t.Helper()
	var lines strings.Builder
	e := json.NewEncoder(&lines)
	for _, r := range records {
		if err := e.Encode(r); err != nil {
			t.Fatal(err)
		}
	}
	return lines.String()
}

func TestEachRowIsARecord(t *testing.T) {
	for _, name := range []string{"uml-6.1.176-tcp", "debian-6.1.192-rxe"} {
		t.Run(name, func(t *testing.T) {
			var records []any
			j := JSON{Joins: Joins{Processes: map[uint64][]rdsinfo.Process{145: {{PID: 7, Command: "db"}, {PID: 9, Command: "db"}}}}}
			for _, table := range rdsinfo.AllTables() {
				err := j.Each(readCapture(t, name), table, func(r any) { records = append(records, r) })
				if err != nil && table != rdsinfo.IBConnections && table != rdsinfo.ConnectionPaths {
					t.Error(err)
				}
			}
			golden(t, name+"/json", jsonLines(t, records))
		})
	}
}

func TestDiffTellsWhatBecameOfEachThing(t *testing.T) {
	earlier := &rdsinfo.Bundle{
		Host: "db1", Release: "6.1.176", Snapshot: readCapture(t, "uml-6.1.176-tcp"),
		Sysctls: map[string]string{"net.core.wmem_max": "212992", "net.rds.max_unacked_packets": "8"},
		Modules: []rdsinfo.Module{{Name: "rds"}, {Name: "rds_tcp"}},
	}
	later := &rdsinfo.Bundle{
		Host: "db1", Release: "6.1.192", Snapshot: readCapture(t, "debian-6.1.192-rxe"),
		Sysctls: map[string]string{"net.core.wmem_max": "1048576", "net.rds.ib.max_send_wr": "256"},
		Modules: []rdsinfo.Module{{Name: "rds", Parameters: map[string]string{"x": "1"}}, {Name: "rds_rdma"}},
	}
	later.Snapshot.Time = earlier.Snapshot.Time.Add(10 * time.Second)
	d := CompareBundles(earlier, later)
	var text strings.Builder
	if err := d.Print(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "diff.txt", text.String())
	golden(t, "diff.json", jsonLines(t, d.Records()))
}

func TestDiffOfTheSameHasOnlyItsHeadingAndWhatIsNotUp(t *testing.T) {
	b := &rdsinfo.Bundle{Snapshot: readCapture(t, "uml-6.1.176-tcp")}
	var text bytes.Buffer
	if err := CompareBundles(b, b).Print(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "diff-same.txt", text.String())
}

func TestWhatCannotBeWrittenIsAnError(t *testing.T) {
	b := &rdsinfo.Bundle{Snapshot: readCapture(t, "uml-6.1.176-tcp")}
	if err := CompareBundles(b, b).Print(full{}); err == nil {
		t.Error("diff: no error")
	}
	if err := new(Text).Print(full{}, b.Snapshot, rdsinfo.Counters); err == nil {
		t.Error("table: no error")
	}
}

// full is a full disk.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, fmt.Errorf("no space left") }
