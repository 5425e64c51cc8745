package main

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdssock"
)

// cFormats are what the C tools give printf for the rows of a table, every column as a
// string. Golden files hold whole texts of theirs; here it is whether live ones keep to it.
var cFormats = []struct{ options, row string }{
	{"--layout 2.0 -c", "%25s %16s"},
	{"--layout 2.0 -k", "%15s %5s %15s %5s %10s %10s %8s"},
	{"--layout 2.0 -n", "%15s %15s %4s %16s %16s %4s"},
	{"--layout 2.0 -r", "%15s %5s %15s %5s %4s %16s %10s"},
	{"--layout 2.0 -s", "%15s %5s %15s %5s %4s %16s %10s"},
	{"--layout 2.0 -t", "%15s %5s %15s %5s %4s %16s %10s"},
	{"--layout 2.0 -T", "%15s %5s %15s %5s %10s %10s %10s %10s %10s"},
	{"--layout 2.0 -I", "%15s %15s %4s %3s %32s %32s"},
	{"--layout 2.3 -c", "%32s %16s"},
	{"--layout 2.3 -k", "%15s %5s %15s %5s %10s %10s %8s %8s %10s %16s"},
	{"--layout 2.3 -I", "%15s %15s %4s %3s %32s %32s %10s %10s"},
	{"--layout 2.3 -ak", "%37s %5s %37s %5s %10s %10s %8s %8s %10s %16s"},
	{"--layout 2.3 -an", "%37s %37s %4s %16s %16s %4s"},
	{"--layout 2.3 -as", "%37s %5s %37s %5s %4s %16s %10s"},
	{"--layout 2.3 -aT", "%37s %5s %37s %5s %10s %10s %10s %10s %10s"},
	{"--layout 2.3 -aI", "%37s %37s %4s %3s %32s %32s %10s %10s"},
}

// checkColumns compares the rows of each table on a host with their formats, and returns how many
// there were by the table's letter.
func checkColumns(t *testing.T, host int) map[string]int {
	t.Helper()
	rows := make(map[string]int)
	for _, f := range cFormats {
		letter := f.options[len(f.options)-1:]
		r := labtest.RunOn(t, host, strings.Fields(f.options)...)
		if r.Status == 2 && strings.ContainsAny(letter, "IT") && strings.Contains(r.Stderr, "Protocol not available") {
			continue // this lab has no such transport
		}
		if r.Status != 0 {
			t.Fatalf("%s: %+v", f.options, r)
		}
		lines := r.Lines()
		if len(lines) < 3 || lines[0] != "" || !strings.HasSuffix(lines[1], ":") {
			t.Fatalf("%s: no title in %q", f.options, r.Stdout)
		}
		for _, line := range lines[2:] {
			words := strings.Fields(line)
			cells := make([]any, len(words))
			for i, w := range words {
				cells[i] = w
			}
			if want := fmt.Sprintf(f.row, cells...); line != want {
				t.Errorf("%s:\n%q, want\n%q", f.options, line, want)
			}
		}
		rows[letter] = len(lines) - 3
	}
	return rows
}

func TestRowsKeepToTheFormatsOfC(t *testing.T) {
	labtest.Need(t, labtest.TCP, labtest.Root, labtest.Hosts(3))
	t.Run("traffic, a dead peer and unread messages", func(t *testing.T) {
		connect(t, 2, 1)
		receiver := socketOn(t, 1, 4800, rdssock.Config{})
		// Connections to nobody stay, and move counters: this test comes after those of doctor.
		sender := socketOn(t, 2, 4801, rdssock.Config{})
		for _, to := range []netip.AddrPort{
			receiver.LocalAddr().(rdssock.Addr).AddrPort,
			netip.MustParseAddrPort("10.9.0.99:4800"), // nobody
		} {
			if _, err := sender.WriteToAddrPort(make([]byte, 777), to); err != nil {
				t.Fatal(err)
			}
		}
		for range 50 { // the message arrives
			if strings.Contains(labtest.RunOn(t, 1, "-r").Stdout, " 777\n") {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		rows := checkColumns(t, 2)
		for _, letter := range []string{"c", "k", "n", "s", "T"} {
			if rows[letter] == 0 {
				t.Errorf("no rows of -%s on the sender", letter)
			}
		}
		if rows := checkColumns(t, 1); rows["r"] == 0 || rows["k"] == 0 {
			t.Errorf("rows on the receiver: %v", rows)
		}
	})
	t.Run("at rest", func(t *testing.T) { checkColumns(t, 3) })
}
