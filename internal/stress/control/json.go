package control

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math/bits"
	"time"

	"github.com/rdskit/rdskit/internal/stress/wire"
)

// maxJSON bounds the options as JSON, in bytes: C sends about 1,000. It is less than 2^16, so that the byte order of
// a length shows.
const maxJSON = 1<<16 - 1

// TakeJSON is the passive side's part of exchanging options as JSON, after WaitGo: it asks for those of the
// active side and reads them into o. The active side waits for GiveJSON then, and sends its go byte again.
func (c *Conn) TakeJSON(o *wire.Options) error {
	if err := c.answer(jsonByte); err != nil {
		return err
	}
	return c.readJSON(o)
}

// GiveJSON answers what TakeJSON took.
func (c *Conn) GiveJSON(o *wire.Options) error { return c.writeJSON(o) }

// ExchangeJSON is the active side's part, after Go: it sends o and returns what the passive side made
// of it.
func (c *Conn) ExchangeJSON(o *wire.Options) (*wire.Options, error) {
	if err := c.writeJSON(o); err != nil {
		return nil, err
	}
	var back wire.Options
	if err := c.readJSON(&back); err != nil {
		return nil, err
	}
	return &back, nil
}

const exchanging = "exchanging options as JSON"

func (c *Conn) writeJSON(o *wire.Options) error {
	body, err := json.Marshal(o)
	if err != nil {
		return err
	}
	b := binary.NativeEndian.AppendUint32(nil, c.swapped(uint32(len(body))))
	if err := c.write(append(b, body...)); err != nil {
		return explain(exchanging, err)
	}
	return nil
}

func (c *Conn) readJSON(o *wire.Options) error {
	if err := c.c.SetReadDeadline(time.Now().Add(answerTime)); err != nil {
		return err
	}
	var head [4]byte
	if _, err := io.ReadFull(c.c, head[:]); err != nil {
		return explain(exchanging, err)
	}
	n := binary.NativeEndian.Uint32(head[:])
	if c.foreign = bits.ReverseBytes32(n) <= maxJSON && n > maxJSON; c.foreign {
		n = bits.ReverseBytes32(n)
	}
	if n > maxJSON {
		return fmt.Errorf("%s: %d bytes are too many: at most %d", exchanging, n, maxJSON)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(c.c, body); err != nil {
		return explain(exchanging, err)
	}
	if err := json.Unmarshal(body, o); err != nil {
		return explain(exchanging, err)
	}
	return nil
}

// swapped is a length in the byte order of the peer, as far as that is known: C sends that of its host.
func (c *Conn) swapped(n uint32) uint32 {
	if c.foreign {
		return bits.ReverseBytes32(n)
	}
	return n
}
