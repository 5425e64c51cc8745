package info

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/rdskit/rdskit/internal/plain"
	"github.com/rdskit/rdskit/rdsinfo"
)

// Text prints tables as C rds-info does: an empty line, a title, the names of
// the columns, and a row for each object. What the kernel does not report, and C fills
// with a value of its own, is "-".
type Text struct {
	Layout Layout
	// IPv6 shows objects with IPv6 addresses, in wider columns.
	IPv6 bool
	// Filter keeps some of the rows.
	Filter Filter
	// Verbose adds the fields of InfiniBand connections that the layout has
	// for it; Fields chooses among those of Layout23.
	Verbose bool
	Fields  []string
	// Joins append columns to the rows.
	Joins
	// Location is that of the times of connection paths; nil is the local one.
	Location *time.Location
}

// Print prints a table. An error of the snapshot is a *rdsinfo.TableError, and nothing is printed then.
func (x *Text) Print(w io.Writer, s *rdsinfo.Snapshot, t rdsinfo.Table) error {
	p := &textPrinter{Text: x, w: w, joined: x.columns(t)}
	err := visit(s, t, x.IPv6, x.Filter, visitor{
		counters:        p.counters,
		connections:     p.connections,
		sockets:         p.sockets,
		queue:           p.queue,
		tcpSockets:      p.tcpSockets,
		ibConnections:   p.ibConnections,
		pathConnections: p.paths,
	})
	return cmp.Or(err, p.err)
}

// Widths of columns with addresses.
const (
	addrWidth  = 15
	addr6Width = 37
)

// A textPrinter prints one table.
type textPrinter struct {
	*Text
	w      io.Writer
	row    row
	joined []column
	err    error
}

func (p *textPrinter) title(title string) {
	p.row.reset()
	p.row.text(0, "\n"+title+"\n")
	p.write()
}

// write writes what is in the row as it is.
func (p *textPrinter) write() {
	if p.err == nil {
		_, p.err = p.w.Write(p.row.b)
	}
	p.row.reset()
}

// end ends a line.
func (p *textPrinter) end() {
	p.row.b = append(p.row.b, '\n')
	p.write()
}

// joinedTitles appends the titles of the joined columns, and joinedCells those of a row.
func (p *textPrinter) joinedTitles() {
	for _, c := range p.joined {
		p.row.text(c.width, c.title)
	}
}

func (p *textPrinter) joinedCells(e ends) {
	for _, c := range p.joined {
		p.row.text(c.width, c.cell(e))
	}
}

func (p *textPrinter) heading(text string) { p.row.text(p.addrWidth(), text) }

func (p *textPrinter) addrWidth() int {
	if p.IPv6 {
		return addr6Width
	}
	return addrWidth
}

func (p *textPrinter) addr(a netip.Addr) {
	if p.IPv6 && a.IsUnspecified() {
		a = netip.IPv6Unspecified()
	}
	p.row.addr(p.addrWidth(), a)
}

func (p *textPrinter) addrPort(a netip.AddrPort) {
	p.addr(a.Addr())
	p.row.uint(5, uint64(a.Port()))
}

func optional[T uint8 | uint16 | uint32 | int32 | uint64](p *textPrinter, width int, o rdsinfo.Optional[T]) {
	switch {
	case !o.Known:
		p.row.text(width, "-")
	case int64(o.Value) < 0:
		p.row.int(width, int64(o.Value))
	default:
		p.row.uint(width, uint64(o.Value))
	}
}

func (p *textPrinter) counters(counters []rdsinfo.Counter) {
	width := 25
	if p.Layout == Layout23 {
		width = 32
	}
	p.title("Counters:")
	p.row.text(width, "CounterName")
	p.row.text(16, "Value")
	p.end()
	for _, c := range counters {
		p.row.text(width, plain.Text(c.Name))
		p.row.uint(16, c.Value)
		p.end()
	}
}

func (p *textPrinter) connections(connections []rdsinfo.Connection) {
	p.title("RDS Connections:")
	p.heading("LocalAddr")
	p.heading("RemoteAddr")
	p.row.text(4, "Tos")
	p.row.text(16, "NextTX")
	p.row.text(16, "NextRX")
	p.row.text(4, "Flgs")
	p.joinedTitles()
	p.end()
	for i := range connections {
		c := &connections[i]
		p.addr(c.Local)
		p.addr(c.Remote)
		optional(p, 4, c.TOS)
		p.row.uint(16, c.NextTX)
		p.row.uint(16, c.NextRX)
		p.row.text(4, c.Flags.String())
		p.joinedCells(connectionEnds(c))
		p.end()
	}
}

func (p *textPrinter) sockets(sockets []rdsinfo.Socket) {
	p.title("RDS Sockets:")
	p.heading("BoundAddr")
	p.row.text(5, "BPort")
	p.heading("ConnAddr")
	p.row.text(5, "CPort")
	p.row.text(10, "SndBuf")
	p.row.text(10, "RcvBuf")
	p.row.text(8, "Inode")
	if p.Layout == Layout23 {
		p.row.text(8, "Cong")
	}
	if p.Layout == Layout23 || p.Processes != nil {
		p.row.text(10, "Pid")
		p.row.text(16, "Comm")
	}
	p.joinedTitles()
	p.end()
	for i := range sockets {
		k := &sockets[i]
		p.addrPort(k.Bound)
		p.addrPort(k.Connected)
		p.row.uint(10, uint64(k.SendBuffer))
		p.row.uint(10, uint64(k.ReceiveBuffer))
		p.row.uint(8, k.Inode)
		if p.Layout == Layout23 {
			p.row.text(8, congestion(k.Congestion))
		}
		switch {
		case p.Processes != nil:
			pids, commands := processTexts(p.Processes[k.Inode])
			p.row.text(10, pids)
			p.row.text(16, commands)
		case p.Layout == Layout23:
			optional(p, 10, k.PID)
			p.row.text(16, plain.Text(k.Command.String()))
		}
		p.joinedCells(ends{local: k.Bound, remote: k.Connected})
		p.end()
	}
}

// processTexts returns the PIDs and the names of processes, joined by commas.
func processTexts(processes []rdsinfo.Process) (pids, commands string) {
	if len(processes) == 0 {
		return "-", "-"
	}
	for i, p := range processes {
		if i > 0 {
			pids += ","
			commands += ","
		}
		pids += strconv.Itoa(p.PID)
		commands += plain.Text(p.Command)
	}
	return pids, commands
}

// congestion is 1 for a congested socket, and 0 for one that is not, as C has
// it.
func congestion(c rdsinfo.Optional[rdsinfo.Congestion]) string {
	switch {
	case c.Known && c.Value == rdsinfo.Congested:
		return "1"
	case c.Known && c.Value == rdsinfo.NotCongested:
		return "0"
	}
	return "-"
}

func (p *textPrinter) queue(t rdsinfo.Table, messages []rdsinfo.Message) {
	switch t {
	case rdsinfo.SendQueue:
		p.title("Send Message Queue:")
	case rdsinfo.RetransmitQueue:
		p.title("Retransmit Message Queue:")
	default:
		p.title("Receive Message Queue:")
	}
	p.heading("LocalAddr")
	p.row.text(5, "LPort")
	p.heading("RemoteAddr")
	p.row.text(5, "RPort")
	p.row.text(4, "Tos")
	p.row.text(16, "Seq")
	p.row.text(10, "Bytes")
	p.joinedTitles()
	p.end()
	for i := range messages {
		m := &messages[i]
		p.addrPort(m.Local)
		p.addrPort(m.Remote)
		optional(p, 4, m.TOS)
		p.row.uint(16, m.Seq)
		p.row.uint(10, uint64(m.Bytes))
		p.joinedCells(ends{local: m.Local, remote: m.Remote})
		p.end()
	}
}

func (p *textPrinter) tcpSockets(sockets []rdsinfo.TCPSocket) {
	p.title("TCP Connections:")
	p.heading("LocalAddr")
	p.row.text(5, "LPort")
	p.heading("RemoteAddr")
	p.row.text(5, "RPort")
	for _, name := range []string{"HdrRemain", "DataRemain", "SentNxt", "ExpectUna", "SeenUna"} {
		p.row.text(10, name)
	}
	p.joinedTitles()
	p.end()
	for i := range sockets {
		k := &sockets[i]
		p.addrPort(k.Local)
		p.addrPort(k.Remote)
		p.row.uint(10, k.HeaderRemaining)
		p.row.uint(10, k.DataRemaining)
		p.row.uint(10, uint64(k.LastSentNext))
		p.row.uint(10, uint64(k.LastExpectedUna))
		p.row.uint(10, uint64(k.LastSeenUna))
		p.joinedCells(ends{local: k.Local, remote: k.Remote})
		p.end()
	}
}

func (p *textPrinter) ibConnections(connections []rdsinfo.IBConnection) {
	p.title("RDS IB Connections:")
	p.heading("LocalAddr")
	p.heading("RemoteAddr")
	p.row.text(4, "Tos")
	p.row.text(3, "SL")
	p.row.text(32, "LocalDev")
	p.row.text(32, "RemoteDev")
	var fields []ibField
	if p.Layout == Layout23 {
		p.row.text(10, "SrcQPNo")
		p.row.text(10, "DstQPNo")
		fields = p.ibFields()
		for _, f := range fields {
			p.row.b = fmt.Appendf(p.row.b, "%*s", f.width, f.title)
		}
	}
	p.joinedTitles()
	p.end()
	for i := range connections {
		c := &connections[i]
		p.addr(c.Local)
		p.addr(c.Remote)
		optional(p, 4, c.TOS)
		optional(p, 3, c.SL)
		p.row.addr(32, c.LocalGID)
		p.row.addr(32, c.RemoteGID)
		switch {
		case p.Layout == Layout23:
			optional(p, 10, c.QPNum)
			optional(p, 10, c.RemoteQPNum)
			for _, f := range fields {
				p.row.b = fmt.Appendf(p.row.b, "%*s", f.width, f.value(c))
			}
		case p.Verbose:
			p.row.b = fmt.Appendf(p.row.b, "  send_wr=%d, recv_wr=%d, send_sge=%d, rdma_mr_max=%d, rdma_mr_size=%d, cache_allocs=%v",
				c.MaxSendWR, c.MaxRecvWR, c.MaxSendSGE, c.RDMAMRMax, c.RDMAMRSize, c.CacheAllocs)
		}
		p.joinedCells(ibEnds(c))
		p.end()
	}
}

// An ibField is a column that Layout23 shows of an InfiniBand connection when asked.
type ibField struct {
	name, title string
	width       int
	value       func(*rdsinfo.IBConnection) string
}

var ibFields = []ibField{
	{"cache_allocs", "Cache Allocs", 15, func(c *rdsinfo.IBConnection) string { return c.CacheAllocs.String() }},
	{"recv_alloc_ctr", "Recv_alloc_ctr", 15, func(c *rdsinfo.IBConnection) string { return c.RecvAllocs.String() }},
	{"recv_free_ctr", "Recv_free_ctr", 15, func(c *rdsinfo.IBConnection) string { return c.RecvFrees.String() }},
	{"send_alloc_ctr", "Send_alloc_ctr", 15, func(c *rdsinfo.IBConnection) string { return c.SendAllocs.String() }},
	{"send_free_ctr", "Send_free_ctr", 15, func(c *rdsinfo.IBConnection) string { return c.SendFrees.String() }},
	{"send_bytes", "Send_bytes KiB", 16, func(c *rdsinfo.IBConnection) string { return kib(c.SendBytes) }},
	{"recv_bytes", "Recv_bytes KiB", 16, func(c *rdsinfo.IBConnection) string { return kib(c.RecvBytes) }},
	{"r_read_bytes", "R_read_bytes KiB", 19, func(c *rdsinfo.IBConnection) string { return kib(c.ReadBytes) }},
	{"r_write_bytes", "R_write_bytes KiB", 19, func(c *rdsinfo.IBConnection) string { return kib(c.WriteBytes) }},
	{"tx_poll_ts", "Tx_poll_ts_ms", 15, func(c *rdsinfo.IBConnection) string { return c.TXPollMillis.String() }},
	{"rx_poll_ts", "Rx_poll_ts_ms", 15, func(c *rdsinfo.IBConnection) string { return c.RXPollMillis.String() }},
	{"tx_poll_cnt", "Tx_poll_cnt", 15, func(c *rdsinfo.IBConnection) string { return c.TXPolls.String() }},
	{"rx_poll_cnt", "Rx_poll_cnt", 15, func(c *rdsinfo.IBConnection) string { return c.RXPolls.String() }},
	{"scq_vector", "Scq_vector", 15, func(c *rdsinfo.IBConnection) string { return c.SendVector.String() }},
	{"rcq_vector", "Rcq_vector", 15, func(c *rdsinfo.IBConnection) string { return c.RecvVector.String() }},
}

// FieldNames returns the names that Text.Fields takes.
func FieldNames() []string {
	names := make([]string, len(ibFields))
	for i, f := range ibFields {
		names[i] = f.name
	}
	return names
}

// ibFields are those to show, in their fixed order.
func (p *textPrinter) ibFields() []ibField {
	switch {
	case len(p.Fields) > 0:
		return slices.DeleteFunc(slices.Clone(ibFields), func(f ibField) bool { return !slices.Contains(p.Fields, f.name) })
	case p.Verbose:
		return ibFields
	}
	return nil
}

func kib(bytes rdsinfo.Optional[uint64]) string {
	if !bytes.Known {
		return "-"
	}
	return strconv.FormatFloat(float64(bytes.Value)/1024, 'f', 2, 64)
}

func (p *textPrinter) paths(connections []rdsinfo.PathConnection) {
	p.title("RDS Paths:")
	for i, c := range connections {
		if i > 0 {
			p.end()
		}
		width := p.addrWidth()
		p.row.b = fmt.Appendf(p.row.b, "\t%*s %*s %4s %7s\n", width, "LocalAddr", width, "RemoteAddr", "Tos", "Trans")
		p.row.b = fmt.Appendf(p.row.b, "\t%*s %*s %4d %7s\n", width, c.Local, width, c.Remote, c.TOS, plain.Text(c.Transport))
		p.row.b = fmt.Appendf(p.row.b, "\n%-4s %-24s %-24s %-24s %-10s %-6s %-11s %s\n",
			"P", "Connected@", "Attempt@", "Reset@", "Attempts", "RDS", "Down(Secs)", "Reason")
		p.write()
		for _, path := range c.Paths {
			down := "---"
			if path.Flags&rdsinfo.Connected != 0 && !path.Reset.IsZero() {
				down = strconv.FormatInt(int64(path.Connected.Sub(path.Reset)/time.Second), 10)
			}
			p.row.b = fmt.Appendf(p.row.b, "%-4d %-24s %-24s %-24s %-10d %s   %-11s %s", path.Index,
				p.time(path.Connected), p.time(path.Attempted), p.time(path.Reset), path.Attempts, path.Flags, down, disconnectReason(path.DisconnectReason))
			p.end()
		}
	}
}

func (p *textPrinter) time(t time.Time) string {
	if t.IsZero() {
		return "---"
	}
	if p.Location != nil {
		t = t.In(p.Location)
	}
	return t.Format("01/02/06 15:04:05 MST")
}
