package stress

import (
	"errors"
	"fmt"
	"net/netip"
	"time"

	"github.com/rdskit/rdskit/internal/stress/control"
	"github.com/rdskit/rdskit/internal/stress/wire"
)

// hello is what two of rdskit agree on beyond wire.Options. The active side says what is to be,
// the passive side only its Version.
type hello struct {
	Version    Said       `json:"version"`
	Address    netip.Addr `json:"address"` // of the sender's RDS sockets, without zone
	TOS        uint8      `json:"tos"`
	MinReqSize int        `json:"min_request_size"`
	CRC        bool       `json:"crc"`
	Bursty     bool       `json:"bursty"`
	SyncBursty bool       `json:"sync_bursty"`
	RXPath     bool       `json:"rx_path"`
	Rate       float64    `json:"rate"`
	GiveUpNs   int64      `json:"give_up_ns"`
	WarmUpNs   int64      `json:"warm_up_ns"`
	IntervalNs int64      `json:"interval_ns"`
	Seed       uint64     `json:"seed"`
	Strict     bool       `json:"strict"`
}

const helloLimit = 16 << 10

// check refuses what no active side of rdskit sends.
func (h *hello) check(o *wire.Options) error {
	switch {
	case !h.Address.IsValid():
		return errors.New("the peer names no address")
	case h.MinReqSize < int(wire.Basic) || h.MinReqSize > int(o.ReqSize):
		return fmt.Errorf("requests of %d to %d bytes are impossible", h.MinReqSize, o.ReqSize)
	case h.Rate != 0 && !(h.Rate >= MinRate && h.Rate <= MaxRate):
		return fmt.Errorf("a rate of %v is impossible", h.Rate)
	case h.WarmUpNs < 0 || h.WarmUpNs > int64(MaxWarmUp) || h.IntervalNs < int64(MinInterval) || h.GiveUpNs < 0:
		return errors.New("the peer names an impossible time")
	}
	return nil
}

// MinRate and MaxRate are the lowest and the highest Config.Rate.
const (
	MinRate = 0.001
	MaxRate = 1e9
)

// helloTime is what the passive side has to open its sockets, and both to warm them up.
const helloTime = 15 * time.Second

// exchange sends this side's hello and returns that of the peer. Meanwhile waiting is called when the peer says that others are
// before this side.
func exchange(conn *control.Conn, h *hello, waiting func()) (*hello, error) {
	if err := conn.Send(frame{Type: frameHello, Hello: h}); err != nil {
		return nil, err
	}
	return receiveHello(conn, waiting)
}

// receiveHello with a nil waiting waits for no others.
func receiveHello(conn *control.Conn, waiting func()) (*hello, error) {
	var f frame
	for {
		if err := conn.Receive(&f, helloLimit, helloTime); err != nil {
			return nil, err
		}
		if f.Type != frameWait || waiting == nil {
			break
		}
		waiting()
	}
	switch {
	case f.Error != "":
		return nil, &PeerError{f.Error}
	case f.Type != frameHello || f.Hello == nil:
		return nil, fmt.Errorf("the peer says %q instead of hello", f.Type)
	}
	return f.Hello, nil
}

// meet tells the peer that this side is ready and waits until it is.
func meet(conn *control.Conn) error {
	if err := conn.Send(frame{Type: frameReady}); err != nil {
		return err
	}
	var f frame
	if err := conn.Receive(&f, helloLimit, helloTime); err != nil {
		return err
	}
	if f.Error != "" {
		return &PeerError{f.Error}
	}
	return nil
}
