package info

import (
	"encoding/json"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/rdsinfo"
)

// readCapture is a stored snapshot of a real kernel.
func readCapture(t testing.TB, name string) *rdsinfo.Snapshot {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../rdsinfo/testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	s := new(rdsinfo.Snapshot)
	if err := json.Unmarshal(b, s); err != nil {
		t.Fatal(err)
	}
	return s
}

var letters = map[byte]rdsinfo.Table{
	'I': rdsinfo.IBConnections,
	'T': rdsinfo.TCPSockets,
	'c': rdsinfo.Counters,
	'k': rdsinfo.Sockets,
	'n': rdsinfo.Connections,
	'r': rdsinfo.ReceiveQueue,
	's': rdsinfo.SendQueue,
	't': rdsinfo.RetransmitQueue,
}

// testdata holds what the C tools printed for the state of the stored snapshots: the
// files' names are the release and the options.
func TestTextIsThatOfTheCTools(t *testing.T) {
	files, err := filepath.Glob("testdata/*/2.*.txt")
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		name, err := filepath.Rel("testdata", file)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) {
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			capture, options := filepath.Split(strings.TrimSuffix(name, ".txt"))
			release, options, _ := strings.Cut(options, "-")
			x := Text{Verbose: strings.Contains(options, "v"), IPv6: strings.Contains(options, "a")}
			if release == Layout23.String() {
				x.Layout = Layout23
			}
			var got strings.Builder
			if err := x.Print(&got, readCapture(t, filepath.Clean(capture)), letters[options[len(options)-1]]); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(ours(t, strings.TrimSuffix(name, ".txt"), string(want)), got.String()); diff != "" {
				t.Errorf("-C +ours:\n%s", diff)
			}
		})
	}
}

// differences are where our text is meant to differ from C's.
var differences = []struct {
	files   string // a pattern
	why     string
	c, ours string
}{
	{"*/2.3-*k", "mainline tells no congestion, process or command", `(?m) {7}-1$`, "        -          -                -"},
	{"debian-*/2.3-ak", "the socket that asks is another", `11400`, "11387"},
	{"uml-*/2.3-ak", "the socket that asks is another", `  974`, "  897"},
	{"*/2.3-*I", "mainline tells no queue pair", `(?m)^(.*::?.*)          0          0( *\d+)?`, "${1}          -          -$2"},
	{"*/2.3-*vI", "nor what UEK counts", `(?m)(-          - +\d+) .*$`, "$1" +
		strings.Repeat("              -", 4) + strings.Repeat("               -", 2) + strings.Repeat("                  -", 2) + strings.Repeat("              -", 6)},
	{"*/2.3-an", "mainline tells no TOS over IPv6", `(fd0\S+) {4}0`, "$1    -"},
	{"debian-*/2.3-an", "C takes the TOS over IPv4 from a record without one", `(10\.8\.0\.\d) {4}0( {16}2 {16}2)`, "$1    3$2"},
	{"debian-*/2.*-t", "the IPv4 table has no addresses", ` 0\.0\.0\.0( +\d+ +) 0\.0\.0\.0`, "10.8.0.2${1}10.8.0.1"},
	{"rxe-*/2.0-s", "the IPv4 table has no addresses", ` 0\.0\.0\.0  5000         0\.0\.0\.0`, "10.8.0.1  5000       10.8.0.77"},
	{"uml-*/2.*-s", "the IPv4 table has no addresses", ` 0\.0\.0\.0  5000         0\.0\.0\.0`, "10.9.0.1  5000       10.9.0.99"},
}

// ours is what we print where C prints the text.
func ours(t *testing.T, name, text string) string {
	for _, d := range differences {
		match, err := path.Match(d.files, name)
		if err != nil {
			t.Fatal(err)
		}
		if !match {
			continue
		}
		changed := regexp.MustCompile(d.c).ReplaceAllString(text, d.ours)
		if changed == text {
			t.Errorf("there is no difference any more: %s", d.why)
		}
		text = changed
	}
	return text
}

func TestNamesOfProgramsStayOnTheirLine(t *testing.T) {
	s := readCapture(t, "uml-6.1.176-tcp")
	processes := make(map[uint64][]rdsinfo.Process)
	sockets, err := s.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range sockets {
		processes[k.Inode] = []rdsinfo.Process{{PID: 1, Command: "a\x1b[2J\nb\u009b1m"}}
	}
	var plain, named strings.Builder
	if err := (&Text{}).Print(&plain, s, rdsinfo.Sockets); err != nil {
		t.Fatal(err)
	}
	if err := (&Text{Joins: Joins{Processes: processes}}).Print(&named, s, rdsinfo.Sockets); err != nil {
		t.Fatal(err)
	}
	if strings.Count(plain.String(), "\n") != strings.Count(named.String(), "\n") || strings.Contains(named.String(), "\x1b") {
		t.Errorf("the names of programs show as %q", named.String())
	}
}
