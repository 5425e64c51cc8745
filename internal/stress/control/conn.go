// Package control is the TCP connection between the two sides of a run of
// rds-stress: how they agree on the options, start together, and learn that the
// other is there. Anybody can connect to it: every read has a time and a size limit.
//
// The active side sends its options and, when it is ready, one byte; the passive side sends a byte
// back when it is. With C that is all: the run ends when the active side closes. Two of rdskit
// recognise each other by wire.SenderRDSKit and the byte that answers it, and go on with frames. C 2.3.9
// and later may agree by a third byte to exchange options once more, as JSON.
package control

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"time"

	"github.com/rdskit/rdskit/internal/stress/wire"
)

// Times that the peer has.
const (
	optionsTime = 10 * time.Second // to send all of its options
	longerTime  = 200 * time.Millisecond
	answerTime  = 10 * time.Second

	// C takes a second for each task that is not ready at once.
	goTime    = 10 * time.Second
	taskTime  = 2 * time.Second
	maxGoTime = 2 * time.Minute
)

const (
	goByte = 0
	// rdskitByte answers the go byte of rdskit.
	rdskitByte = 0xb5
	// jsonByte is how C 2.3.9 and later answers one that wants to go on with JSON.
	jsonByte = 0x61
)

// A Conn is the connection to one peer.
type Conn struct {
	c       net.Conn
	early   []byte // that were read before their time
	foreign bool   // the peer's numbers in host order are not in that of this host
}

// NewConn takes over c, whose peer it has watched by the kernel: a host that is gone shows within seconds.
func NewConn(c net.Conn) *Conn {
	if t, ok := c.(*net.TCPConn); ok {
		// What fails here shows as a peer that is noticed late.
		_ = t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: time.Second, Interval: time.Second, Count: 5})
	}
	return &Conn{c: c}
}

// Close ends the run for the peer.
func (c *Conn) Close() error { return c.c.Close() }

// RemoteAddr and LocalAddr are the ends of the connection.
func (c *Conn) RemoteAddr() netip.AddrPort { return addrPort(c.c.RemoteAddr()) }

// LocalAddr is this side's end.
func (c *Conn) LocalAddr() netip.AddrPort { return addrPort(c.c.LocalAddr()) }

func addrPort(a net.Addr) netip.AddrPort {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	ap := t.AddrPort()
	return netip.AddrPortFrom(ap.Addr().Unmap(), ap.Port())
}

// ErrClosed says that the peer closed the connection.
var ErrClosed = errors.New("peer unexpectedly closed connection")

// explain says what went wrong with the connection.
func explain(what string, err error) error {
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("%w (%s)", ErrClosed, what)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("%s: the peer said nothing for too long: %w", what, err)
	}
	return fmt.Errorf("%s: %w", what, err)
}

func (c *Conn) readByte(limit time.Duration) (byte, error) {
	if len(c.early) > 0 {
		b := c.early[0]
		c.early = c.early[1:]
		return b, nil
	}
	var b [1]byte
	if err := c.c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		return 0, err
	}
	_, err := io.ReadFull(c.c, b[:])
	return b[0], err
}

func (c *Conn) write(b []byte) error {
	if err := c.c.SetWriteDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	_, err := c.c.Write(b)
	return err
}

// SendOptions sends what the run is to be.
func (c *Conn) SendOptions(o *wire.Options, form wire.Form) error {
	if err := c.write(o.Append(nil, form)); err != nil {
		return explain("sending the options", err)
	}
	return nil
}

// ReceiveOptions receives them, in whatever form they come.
func (c *Conn) ReceiveOptions() (*wire.Options, wire.Form, error) {
	const what = "receiving the options"
	if err := c.c.SetReadDeadline(time.Now().Add(optionsTime)); err != nil {
		return nil, 0, err
	}
	b := make([]byte, wire.MaxSize)
	if _, err := io.ReadFull(c.c, b[:wire.PrefixSize]); err != nil {
		return nil, 0, explain(what, err)
	}
	ipv6 := c.LocalAddr().Addr().Is6()
	forms := wire.Forms(b[:wire.PrefixSize], ipv6)
	form, n := forms[0], forms[0].Size()
	if _, err := io.ReadFull(c.c, b[wire.PrefixSize:n]); err != nil {
		return nil, 0, explain(what, err)
	}
	var o wire.Options
	if err := o.Decode(b, form); err != nil {
		return nil, 0, err
	}
	if len(forms) == 1 {
		return &o, form, nil
	}
	// Who has the short header was built for mainline kernels, and has the shorter form.
	if l, ok := wire.LayoutOfAck(o.AckSize); ok && (l == wire.Basic || l == wire.Basic6) {
		return &o, form, nil
	}
	longer, err := c.readLonger(b[n:n+1], o.WantsJSON)
	if err != nil {
		return nil, 0, explain(what, err)
	}
	if longer {
		form = forms[1]
		if err := o.Decode(b, form); err != nil {
			return nil, 0, err
		}
	}
	return &o, form, nil
}

// readLonger reads the byte by which a form is longer than another, if it is there. It comes in the same burst;
// what comes later is the go byte. That is in the burst, too, if the peer wants JSON.
func (c *Conn) readLonger(last []byte, json bool) (bool, error) {
	burst := make([]byte, 1, 2)
	if json {
		burst = burst[:2]
	}
	if err := c.c.SetReadDeadline(time.Now().Add(longerTime)); err != nil {
		return false, err
	}
	n, err := io.ReadFull(c.c, burst)
	if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) {
		return false, err
	}
	if n < len(burst) {
		c.early = burst[:n]
		return false, nil
	}
	last[0], c.early = burst[0], burst[1:]
	return true, nil
}

// Go tells the passive side that this side is ready, and waits until that one is. rdskit reports
// whether the peer is rdskit, too, and json whether it wants JSON now.
func (c *Conn) Go(tasks int) (rdskit, json bool, err error) {
	if err := c.write([]byte{goByte}); err != nil {
		return false, false, explain("starting the run", err)
	}
	b, err := c.readByte(startTime(tasks))
	if err != nil {
		return false, false, explain("starting the run", err)
	}
	return b == rdskitByte, b == jsonByte, nil
}

// startTime is what a peer has to start its tasks.
func startTime(tasks int) time.Duration {
	return min(goTime+time.Duration(tasks)*taskTime, maxGoTime)
}

// WaitGo waits until the active side is ready.
func (c *Conn) WaitGo(tasks int) (byte, error) {
	b, err := c.readByte(startTime(tasks))
	if err != nil {
		return 0, explain("waiting for the peer's tasks", err)
	}
	return b, nil
}

// Ready tells the active side that this one is ready: a C peer by the byte that it sent.
func (c *Conn) Ready(sent byte, rdskit bool) error {
	if rdskit {
		sent = rdskitByte
	}
	return c.answer(sent)
}

func (c *Conn) answer(b byte) error {
	if err := c.write([]byte{b}); err != nil {
		return explain("starting the run", err)
	}
	return nil
}

// maxFrame bounds a frame, in bytes.
const maxFrame = 16 << 20

// Send sends a value as one frame: four bytes of length, and JSON.
func (c *Conn) Send(v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if len(body) > maxFrame {
		return fmt.Errorf("a frame of %d bytes is too long", len(body))
	}
	if err := c.write(append(binary.BigEndian.AppendUint32(nil, uint32(len(body))), body...)); err != nil {
		return explain("telling the peer", err)
	}
	return nil
}

// Receive receives a frame of at most limit bytes within a time into v.
func (c *Conn) Receive(v any, limit int, within time.Duration) error {
	const what = "hearing from the peer"
	if err := c.c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	body, err := readFrame(c.c, limit)
	if err != nil {
		return explain(what, err)
	}
	if err := json.Unmarshal(body, v); err != nil {
		return explain(what, err)
	}
	return nil
}

func readFrame(r io.Reader, limit int) ([]byte, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	n := binary.BigEndian.Uint32(head[:])
	if int64(n) > int64(min(limit, maxFrame)) {
		return nil, fmt.Errorf("a frame of %d bytes is too long: at most %d", n, min(limit, maxFrame))
	}
	// A peer that claims much and sends little gets no memory for it.
	var body []byte
	for len(body) < int(n) {
		chunk := min(int(n)-len(body), 64<<10)
		body = append(body, make([]byte, chunk)...)
		if _, err := io.ReadFull(r, body[len(body)-chunk:]); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// WaitClosed waits until a C active side ends the run, which it does by anything that it does.
func (c *Conn) WaitClosed() error {
	if err := c.c.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	var b [1]byte
	_, err := c.c.Read(b[:])
	if err == nil || errors.Is(err, io.EOF) {
		return nil
	}
	return explain("hearing from the peer", err)
}
