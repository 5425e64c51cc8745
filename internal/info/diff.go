package info

import (
	"fmt"
	"io"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rdskit/rdskit/internal/plain"
	"github.com/rdskit/rdskit/rdsinfo"
)

// A Diff is what became of RDS from one bundle to another.
type Diff struct {
	*rdsinfo.Delta
	earlier, later *rdsinfo.Bundle
}

// CompareBundles compares bundles of one host.
func CompareBundles(earlier, later *rdsinfo.Bundle) *Diff {
	return &Diff{rdsinfo.Compare(earlier.Snapshot, later.Snapshot), earlier, later}
}

// A setting is a sysctl, a parameter or a version that differs. What a bundle does
// not have is "".
type setting struct{ name, before, after string }

func (d *Diff) settings() []setting {
	before, after := allSettings(d.earlier), allSettings(d.later)
	var changed []setting
	names := slices.Sorted(maps.Keys(after))
	for name := range before {
		if _, ok := after[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		if before[name] != after[name] {
			changed = append(changed, setting{name, before[name], after[name]})
		}
	}
	return changed
}

func allSettings(b *rdsinfo.Bundle) map[string]string {
	all := map[string]string{"host": b.Host, "kernel": b.Release}
	maps.Copy(all, b.Sysctls)
	for _, m := range b.Modules {
		all["module "+m.Name] = strings.TrimSpace("loaded " + m.Version)
		for name, value := range m.Parameters {
			all["module "+m.Name+" "+name] = value
		}
	}
	return all
}

// changed are the connections of which there is something to tell.
func (d *Diff) changed() []rdsinfo.ConnectionDelta {
	return slices.DeleteFunc(slices.Clone(d.Connections), func(c rdsinfo.ConnectionDelta) bool {
		return c.Before == c.After && c.Sent.Value == 0 && c.Received.Value == 0 && c.Sent.Known &&
			c.Waiting.Messages == 0 && c.Grown == 0
	})
}

// moved are the counters that moved, or went back.
func (d *Diff) moved() []rdsinfo.CounterDelta {
	return slices.DeleteFunc(slices.Clone(d.Counters), func(c rdsinfo.CounterDelta) bool { return c.Before == c.After })
}

// Print prints what changed, as text. Its error is that of w.
func (d *Diff) Print(w io.Writer) error {
	p := &textPrinter{Text: &Text{IPv6: true}, w: w}
	p.row.text(0, fmt.Sprintf("From %s to %s, %.3f s.\n", d.earlier.Snapshot.Time.Format(time.RFC3339), d.later.Snapshot.Time.Format(time.RFC3339), d.Elapsed.Seconds()))
	p.write()
	if counters := d.moved(); len(counters) > 0 {
		p.title("Counters:")
		p.row.text(32, "CounterName")
		for _, name := range []string{"Before", "After", "Moved", "PerSecond"} {
			p.row.text(20, name)
		}
		p.end()
		for _, c := range counters {
			p.row.text(32, plain.Text(c.Name))
			p.row.uint(20, c.Before)
			p.row.uint(20, c.After)
			optional(p, 20, c.Moved)
			p.row.text(20, rateText(d.Rate(c)))
			p.end()
		}
	}
	if connections := d.changed(); len(connections) > 0 {
		p.title("RDS Connections:")
		p.heading("LocalAddr")
		p.heading("RemoteAddr")
		p.row.text(4, "Tos")
		for _, name := range []string{"Before", "After", "Sent", "Received", "Waiting", "WaitBytes", "Grown"} {
			p.row.text(10, name)
		}
		p.row.text(0, "Note")
		p.end()
		for _, c := range connections {
			p.addr(c.Local)
			p.addr(c.Remote)
			optional(p, 4, c.TOS)
			p.row.text(10, c.Before.String())
			p.row.text(10, c.After.String())
			optional(p, 10, c.Sent)
			optional(p, 10, c.Received)
			p.row.int(10, int64(c.Waiting.Messages))
			p.row.int(10, c.Waiting.Bytes)
			p.row.int(10, c.Grown)
			p.row.text(0, note(c))
			p.end()
		}
	}
	d.printSockets(p, "Sockets opened:", d.Opened)
	d.printSockets(p, "Sockets closed:", d.Closed)
	if settings := d.settings(); len(settings) > 0 {
		p.title("Settings:")
		for _, s := range settings {
			p.row.text(0, fmt.Sprintf("%s: %q -> %q", plain.Text(s.name), s.before, s.after))
			p.end()
		}
	}
	return p.err
}

func (d *Diff) printSockets(p *textPrinter, title string, sockets []rdsinfo.Socket) {
	if len(sockets) == 0 {
		return
	}
	p.title(title)
	p.heading("BoundAddr")
	p.row.text(5, "BPort")
	p.row.text(8, "Inode")
	p.end()
	for _, k := range sockets {
		p.addrPort(k.Bound)
		p.row.uint(8, k.Inode)
		p.end()
	}
}

// note says in a word what is remarkable about a connection.
func note(c rdsinfo.ConnectionDelta) string {
	switch {
	case !c.Before.Known:
		return "new"
	case !c.After.Known:
		return "gone"
	case c.Stuck:
		return "stuck"
	case !c.Sent.Known || !c.Received.Known:
		return "began anew"
	}
	return ""
}

func rateText(r rdsinfo.Optional[float64]) string {
	if !r.Known {
		return "-"
	}
	return strconv.FormatFloat(r.Value, 'f', 1, 64)
}

type diffRecord struct {
	Type    string    `json:"type"`
	Earlier time.Time `json:"earlier"`
	Later   time.Time `json:"later"`
	Elapsed float64   `json:"elapsed_seconds"`
}

type counterDeltaRecord struct {
	Type   string                    `json:"type"`
	Name   string                    `json:"name"`
	Before uint64                    `json:"before"`
	After  uint64                    `json:"after"`
	Moved  rdsinfo.Optional[uint64]  `json:"moved"`
	Rate   rdsinfo.Optional[float64] `json:"per_second"`
}

type connectionDeltaRecord struct {
	Type      string                                    `json:"type"`
	Local     netip.Addr                                `json:"local_address"`
	Remote    netip.Addr                                `json:"remote_address"`
	TOS       rdsinfo.Optional[uint8]                   `json:"tos"`
	Transport string                                    `json:"transport"`
	Before    rdsinfo.Optional[rdsinfo.ConnectionState] `json:"state_before"`
	After     rdsinfo.Optional[rdsinfo.ConnectionState] `json:"state_after"`
	Sent      rdsinfo.Optional[uint64]                  `json:"sent"`
	Received  rdsinfo.Optional[uint64]                  `json:"received"`
	Messages  int                                       `json:"waiting_messages"`
	Bytes     int64                                     `json:"waiting_bytes"`
	Grown     int64                                     `json:"grown_bytes"`
	Stuck     bool                                      `json:"stuck"`
}

type socketDeltaRecord struct {
	Type    string     `json:"type"`
	Address netip.Addr `json:"bound_address"`
	Port    uint16     `json:"bound_port"`
	Inode   uint64     `json:"inode"`
}

type settingRecord struct {
	Type   string `json:"type"`
	Name   string `json:"name"`
	Before string `json:"before"`
	After  string `json:"after"`
}

// Records returns what Print prints as records for encoding/json.
func (d *Diff) Records() []any {
	records := []any{diffRecord{"diff", d.earlier.Snapshot.Time, d.later.Snapshot.Time, d.Elapsed.Seconds()}}
	for _, c := range d.moved() {
		records = append(records, counterDeltaRecord{"counter", c.Name, c.Before, c.After, c.Moved, d.Rate(c)})
	}
	for _, c := range d.changed() {
		records = append(records, connectionDeltaRecord{"connection", c.Local, c.Remote, c.TOS, c.Transport, c.Before, c.After,
			c.Sent, c.Received, c.Waiting.Messages, c.Waiting.Bytes, c.Grown, c.Stuck})
	}
	for _, k := range d.Opened {
		records = append(records, socketDeltaRecord{"socket_opened", k.Bound.Addr(), k.Bound.Port(), k.Inode})
	}
	for _, k := range d.Closed {
		records = append(records, socketDeltaRecord{"socket_closed", k.Bound.Addr(), k.Bound.Port(), k.Inode})
	}
	for _, s := range d.settings() {
		records = append(records, settingRecord{"setting", s.name, s.before, s.after})
	}
	return records
}
