package main

import (
	"encoding/json"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdssock"
)

// unread leaves a message of 100 bytes unread at an address of loopback.
func unread(t *testing.T, to string) *rdssock.Conn {
	t.Helper()
	c, err := rdssock.Listen(netip.MustParseAddrPort(to), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	if _, err := c.WriteToAddrPort(make([]byte, 100), netip.MustParseAddrPort(to)); err != nil {
		t.Fatal(err)
	}
	return c
}

// hasRDMA tells whether the lab has the transport infiniband, and so its table.
func hasRDMA() bool {
	_, err := os.Stat("/sys/module/rds_rdma")
	return err == nil
}

func TestTablesArePrintedInTheirOrder(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.TCP)
	var titles []string
	for _, args := range [][]string{{}, {"-Icn"}, {"-n", "-c", "-I"}, {"--layout", "2.3"}} {
		r := labtest.RunOn(t, 0, args...)
		if r.Status != 0 {
			t.Errorf("%q: status %d, stderr %q", args, r.Status, r.Stderr)
		}
		titles = append(titles, strings.Join(regexp.MustCompile(`(?m)^[A-Z].*:$`).FindAllString(r.Stdout, -1), " "))
	}
	all := "TCP Connections: Counters: RDS Sockets: RDS Connections: Receive Message Queue: Send Message Queue: Retransmit Message Queue:"
	some := "Counters: RDS Connections:"
	if hasRDMA() {
		all, some = "RDS IB Connections: "+all, "RDS IB Connections: "+some
	}
	for i, want := range []string{all, some, some, all} {
		if titles[i] != want {
			t.Errorf("tables %q, want %q", titles[i], want)
		}
	}
}

func TestATableAskedForAloneThatIsAbsentIsAnError(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	type absent struct {
		args   []string
		status int
		stderr string
	}
	tests := []absent{
		{[]string{"-p"}, 2, "it comes with the module rds of an Oracle UEK kernel"},
		{[]string{"-pc"}, 0, "Protocol not available"},
		{[]string{"--layout", "2.3"}, 0, "\"paths\" info request: Protocol not available"},
	}
	if !hasRDMA() {
		tests = append(tests, []absent{
			{[]string{"-I"}, 2, "rds-info: Unable get statistics: Protocol not available\nrds-info: table of InfiniBand connections: the kernel has no such table: it comes with the module rds_rdma\n"},
			{[]string{"-I", "--layout", "2.3"}, 2, "rds-info: Unable to get statistics to process the \"IB transport connections\" info request: Protocol not available\n"},
			{[]string{"-Ic"}, 0, "Protocol not available"},
			{nil, 0, "Protocol not available"},
		}...)
	}
	for _, tt := range tests {
		r := labtest.RunOn(t, 0, tt.args...)
		if r.Status != tt.status || !strings.Contains(r.Stderr, tt.stderr) {
			t.Errorf("%q: status %d, stderr %q; want %d, %q", tt.args, r.Status, r.Stderr, tt.status, tt.stderr)
		}
	}
}

func TestRowsAreFilteredAndNameTheirProcesses(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	unread(t, "127.0.0.1:4001")
	unread(t, "[::1]:4002")
	for _, tt := range []struct {
		name string
		args []string
		want string // of the rows, an expression
	}{
		{"a socket", []string{"-k", "--filter", "port=4001"}, `^ +127.0.0.1  4001 +0.0.0.0     0 +\d+ +\d+ +\d+\n$`},
		{"its process", []string{"-k", "--filter", "port=4001", "--procs"}, `^ +127.0.0.1  4001 +0.0.0.0     0 +\d+ +\d+ +\d+ +\d+ +rds-info.test\n$`},
		{"what it has not read", []string{"-r", "--filter", "port=4001"}, `^ +127.0.0.1  4001 +127.0.0.1  4001    0 +\d+        100\n$`},
		{"IPv6 in wide columns", []string{"-ar", "--filter", "port=4002"}, `^ {34}::1  4002 {35}::1  4002    0 +\d+        100\n$`},
		{"IPv6 not without -a", []string{"-r", "--filter", "port=4002"}, `^$`},
		{"loopback connections", []string{"-n", "--filter", "transport=loopback,local=127.0.0.1"}, `^ +127.0.0.1 +127.0.0.1    0 +\d+ +\d+ --C-\n$`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := labtest.RunOn(t, 0, tt.args...)
			_, rows, _ := strings.Cut(strings.TrimPrefix(r.Stdout, "\n"), "\n") // the title
			_, rows, _ = strings.Cut(rows, "\n")                                // the names of the columns
			if r.Status != 0 || !regexp.MustCompile(tt.want).MatchString(rows) {
				t.Errorf("status %d, rows %q; want %s; stderr %q", r.Status, rows, tt.want, r.Stderr)
			}
		})
	}
}

func TestEachLineOfJSONStandsByItself(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	unread(t, "127.0.0.1:4003")
	r := labtest.RunOn(t, 0, "--json", "--procs")
	if r.Status != 0 {
		t.Fatalf("status %d, stderr %q", r.Status, r.Stderr)
	}
	kinds := map[string]int{}
	for _, line := range r.Lines() {
		var row map[string]any
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kinds[row["type"].(string)]++
		if row["type"] == "receive_message" && row["local_port"] == 4003.0 && row["bytes"] != 100.0 {
			t.Errorf("%s", line)
		}
	}
	for _, kind := range []string{"counter", "socket", "connection", "receive_message"} {
		if kinds[kind] == 0 {
			t.Errorf("no row of type %s among %v", kind, kinds)
		}
	}
}

func TestABundleHoldsWhatTheHostHad(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	c := unread(t, "127.0.0.1:4004")
	file := filepath.Join(t.TempDir(), "bundle")
	for range 2 { // an older one is replaced
		if r := labtest.RunOn(t, 0, "snapshot", file); r.Status != 0 || r.Stdout != "" {
			t.Fatalf("snapshot: status %d, %q, %q", r.Status, r.Stdout, r.Stderr)
		}
	}
	live := labtest.RunOn(t, 0, "-r")
	if r := labtest.RunOn(t, 0, "-r", "--from", file); r.Status != 0 || r.Stdout != live.Stdout {
		t.Errorf("from the bundle: status %d, %q, want %q", r.Status, r.Stdout, live.Stdout)
	}
	if r := labtest.RunOn(t, 0, "check", "--counter", "recv_queued", "--warning", "0", "--from", file); r.Status != 1 || !strings.HasPrefix(r.Stdout, "RDS WARNING - recv_queued is ") {
		t.Errorf("check: status %d, %q", r.Status, r.Stdout)
	}
	if _, err := c.WriteToAddrPort(nil, netip.MustParseAddrPort("127.0.0.1:4004")); err != nil {
		t.Fatal(err)
	}
	second := file + "2"
	if r := labtest.RunOn(t, 0, "snapshot", second); r.Status != 0 {
		t.Fatal(r.Stderr)
	}
	r := labtest.RunOn(t, 0, "diff", file, second)
	if r.Status != 0 || !regexp.MustCompile(`(?m)^ +send_queued +\d+ +\d+ +1 `).MatchString(r.Stdout) {
		t.Errorf("diff: status %d, %s%s", r.Status, r.Stdout, r.Stderr)
	}
	leftovers, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*"))
	if err != nil || len(leftovers) > 0 {
		t.Errorf("left behind: %q, %v", leftovers, err)
	}
	for _, args := range [][]string{{"-n", "--from", "/etc/passwd"}, {"-n", "--from", file + "3"}, {"diff", file}, {"snapshot"}, {"-n", "--from", file, "-N"}} {
		if r := labtest.RunOn(t, 0, args...); r.Status != 2 || r.Stdout != "" || r.Stderr == "" {
			t.Errorf("%q: status %d, %q, %q", args, r.Status, r.Stdout, r.Stderr)
		}
	}
}

func TestWatchPrintsALineForEachThingThatMoves(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	unread(t, "127.0.0.1:4005")
	r := labtest.RunOn(t, 0, "watch", "--count", "2", "0.1")
	if n := strings.Count(r.Stdout, " socket 127.0.0.1:4005 unread 1 messages 100 bytes of "); r.Status != 0 || n != 2 {
		t.Errorf("status %d, %q, %q", r.Status, r.Stdout, r.Stderr)
	}
	for _, args := range [][]string{{"watch", "0"}, {"watch", "x"}, {"watch", "1", "2"}} {
		if r := labtest.RunOn(t, 0, args...); r.Status != 2 {
			t.Errorf("%q: status %d", args, r.Status)
		}
	}
}

// A check of the monitoring that names one counter, as people wrote it around
// rds-info -Icn: the lines split into a name and a value.
func TestScriptsThatParseTheCToolGetWhatTheyExpect(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.TCP, labtest.Hosts(2), labtest.Root)
	unread(t, "127.0.0.1:4006")
	found := 0
	for line := range strings.Lines(labtest.RunOn(t, 0, "-Icn").Stdout) {
		if f := strings.Fields(line); len(f) == 2 && f[0] == "recv_queued" && regexp.MustCompile(`^[1-9]\d*$`).MatchString(f[1]) {
			found++
		}
	}
	if found != 1 {
		t.Errorf("%d lines with recv_queued", found)
	}
	// rds-info -n | awk '{ if ($3 ~ /TOS/) print $4 }' and its like: NextTX is column 4, NextRX column 5.
	for line := range strings.Lines(labtest.RunOn(t, 0, "-n", "--filter", "local=127.0.0.1").Stdout) {
		if f := strings.Fields(line); len(f) == 6 && f[0] == "127.0.0.1" {
			found++
			if f[2] != "0" || f[3] == "0" || f[4] == "0" {
				t.Errorf("columns %q", f)
			}
		}
	}
	if found < 2 {
		t.Error("no row of the loopback connection")
	}
}

func TestOutputThatCannotBeWrittenIsAnError(t *testing.T) {
	labtest.Need(t, labtest.RDS)
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer full.Close()
	for _, args := range [][]string{{"-c"}, {"-c", "--json"}, {"check", "--down"}} {
		cmd := labtest.Command(t, args...)
		cmd.Stdout = full
		if r := labtest.StartOn(t, 0, cmd).Finish(t); r.Status == 0 || !strings.Contains(r.Stderr, "no space left on device") {
			t.Errorf("%q: status %d, stderr %q", args, r.Status, r.Stderr)
		}
	}
}

func TestWhatLooksLikeNoOptionIsRefused(t *testing.T) {
	for _, tt := range []struct {
		args   []string
		status int
		stderr string
	}{
		{[]string{"--from", "", "-n"}, 2, `--from "": the name is empty`},
		{[]string{"--netns", "", "-n"}, 2, `--netns "": the name is empty`},
		{[]string{"--from", "x", "doctor"}, 2, `--from "x": goes after the command doctor`},
		{[]string{"--netns", "h1", "check", "--down"}, 3, `--netns "h1": goes after the command check`},
		{[]string{"-n", "watch"}, 2, "-n is not an option of the command watch"},
		{[]string{"check", "--counter", ""}, 3, `--counter "": the name is empty`},
		{[]string{"check", "--rate", ""}, 3, `--rate "": the name is empty`},
		{[]string{"check", "--counter", "conn_reset", "--filter", "tos=3"}, 3, `--filter "tos=3": counters are of the whole kernel`},
		{[]string{"check", "--rate", "conn_reset", "--filter", "tos=3"}, 3, `--filter "tos=3": counters are of the whole kernel`},
		{[]string{"check", "--stuck", "--from", "x"}, 3, `--from "x": --rate and --stuck take two snapshots`},
		{[]string{"check", "--queue-bytes", "-w", "/root:10"}, 3, "a shell needs quotes around ~"},
		{[]string{"doctor", "--from", ""}, 2, `--from "": the name is empty`},
		{[]string{"--from", bundleOf(t, "debian-6.1.192-rxe"), "-I", "-o", "send_bytes"}, 2, "layout 2.0 has no such columns: add --layout 2.3"},
		{[]string{"diff", bundleOf(t, "rxe-6.1.192-dead-peer"), bundleOf(t, "uml-6.1.176-tcp")}, 2, "give the earlier first"},
		{[]string{"snapshot", ""}, 2, "want the name of one FILE"},
		{[]string{"--from", bundleOf(t, "uml-6.1.176-tcp"), "-n", "--tcp-info"}, 2, "take it by rds-info snapshot --tcp-info"},
	} {
		if r := labtest.RunOn(t, 0, tt.args...); r.Status != tt.status || r.Stdout != "" || !strings.Contains(r.Stderr, tt.stderr) {
			t.Errorf("%q: %+v, want status %d, %q", tt.args, r, tt.status, tt.stderr)
		}
	}
}

func TestANamespaceOfAnotherKindIsRefused(t *testing.T) {
	labtest.Need(t, labtest.RDS, labtest.Root)
	for _, args := range [][]string{{"-n"}, {"doctor"}, {"watch"}, {"snapshot", "/dev/null"}} {
		r := labtest.RunOn(t, 0, append(args, "--netns", "/proc/self/ns/mnt")...)
		if want := "rds-info: /proc/self/ns/mnt: setns: invalid argument: it is a namespace of another kind than of the network\n"; r.Status != 2 || r.Stdout != "" || r.Stderr != want {
			t.Errorf("%q: %+v, want %q", args, r, want)
		}
	}
}

func TestABundleOfAHostWithoutRDSTellsWhyItHasNoTables(t *testing.T) {
	empty := map[string]any{"byte_order": "little", "word_size": 8, "uint64_align": 8, "tables": []any{}}
	file := bundleFile(t, map[string]any{"snapshot": empty, "socket_error": "address family not supported by protocol\x1b[2J"})
	for _, tt := range []struct {
		args   []string
		status int
	}{{nil, 2}, {[]string{"-n"}, 2}, {[]string{"check", "--down"}, 3}} {
		r := labtest.RunOn(t, 0, append(tt.args, "--from", file)...)
		if want := ": it has no tables, since no RDS socket could be made: address family not supported by protocol?[2J; rds-info doctor --from tells more\n"; r.Status != tt.status || !strings.HasSuffix(r.Stdout+r.Stderr, want) {
			t.Errorf("%q: %+v, want %q", tt.args, r, want)
		}
	}
}

// The reason of a failure is told once.
func TestAnAbsentTableIsToldOfOnce(t *testing.T) {
	bundle := bundleOf(t, "uml-6.1.176-tcp")
	for _, tt := range []struct{ options, want string }{
		{"-I", "rds-info: Unable get statistics: Protocol not available\nrds-info: table of InfiniBand connections: the kernel has no such table: it comes with the module rds_rdma\n"},
		{"-Ip", "rds-info: Unable get statistics: Protocol not available\nrds-info: table of InfiniBand connections: the kernel has no such table: it comes with the module rds_rdma\n" +
			"rds-info: Unable get statistics: Protocol not available\nrds-info: table of connection paths: the kernel has no such table: it comes with the module rds of an Oracle UEK kernel\n" +
			"rds-info: none of the tables can be had\n"},
	} {
		if r := labtest.RunOn(t, 0, tt.options, "--from", bundle); r.Status != 2 || r.Stderr != tt.want {
			t.Errorf("%s: %+v, want %q", tt.options, r, tt.want)
		}
	}
}
