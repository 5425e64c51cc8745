package rdsinfo

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
)

// A storedSnapshot is a Snapshot as JSON. It holds the records as the kernel returned
// them, with what decoding them on another machine takes.
type storedSnapshot struct {
	Time        time.Time     `json:"time"`
	Dialect     string        `json:"dialect,omitempty"` // uek, or mainline
	ByteOrder   string        `json:"byte_order"`        // little or big
	WordSize    int           `json:"word_size"`         // of a C long, in bytes
	Uint64Align int           `json:"uint64_align"`      // of a C struct's u64, in bytes
	Tables      []storedTable `json:"tables"`
}

type storedTable struct {
	Option     int    `json:"option"` // of getsockopt
	RecordSize int    `json:"record_size,omitempty"`
	Records    []byte `json:"records,omitempty"`
	Missing    bool   `json:"missing,omitempty"` // ENOPROTOOPT
	Error      string `json:"error,omitempty"`   // any other
}

const (
	littleEndian = "little"
	bigEndian    = "big"
	mainline     = "mainline"
	uek          = "uek"
)

// MarshalJSON returns the tables as they were read, for [Snapshot.UnmarshalJSON].
func (s *Snapshot) MarshalJSON() ([]byte, error) {
	stored := storedSnapshot{
		Time:        s.Time,
		Dialect:     mainline,
		ByteOrder:   littleEndian,
		WordSize:    s.layout.WordSize(),
		Uint64Align: s.layout.Uint64Align(),
	}
	if s.layout.ByteOrder() == binary.BigEndian {
		stored.ByteOrder = bigEndian
	}
	if s.Dialect == cmsg.UEK {
		stored.Dialect = uek
	}
	for option, raw := range s.raw {
		t := storedTable{Option: option, RecordSize: raw.size, Records: raw.records}
		switch {
		case errors.Is(raw.err, syscall.ENOPROTOOPT):
			t = storedTable{Option: option, Missing: true}
		case raw.err != nil:
			t = storedTable{Option: option, Error: raw.err.Error()}
		}
		stored.Tables = append(stored.Tables, t)
	}
	slices.SortFunc(stored.Tables, func(a, b storedTable) int { return a.Option - b.Option })
	return json.Marshal(stored)
}

// UnmarshalJSON reads what MarshalJSON returned, on this machine or another.
func (s *Snapshot) UnmarshalJSON(b []byte) error {
	var stored storedSnapshot
	if err := json.Unmarshal(b, &stored); err != nil {
		return err
	}
	var order binary.ByteOrder = binary.LittleEndian
	switch stored.ByteOrder {
	case littleEndian:
	case bigEndian:
		order = binary.BigEndian
	default:
		return fmt.Errorf("byte order %q: want %s or %s", stored.ByteOrder, littleEndian, bigEndian)
	}
	for _, size := range []int{stored.WordSize, stored.Uint64Align} {
		if size != 4 && size != 8 {
			return fmt.Errorf("word of %d bytes: want 4 or 8", size)
		}
	}
	read := Snapshot{
		Time:   stored.Time,
		layout: abi.LayoutOf(stored.WordSize, stored.Uint64Align, order),
		raw:    make(map[int]rawTable, len(stored.Tables)),
	}
	switch stored.Dialect {
	case mainline, "":
	case uek:
		read.Dialect = cmsg.UEK
	default:
		return fmt.Errorf("dialect %q: want %s or %s", stored.Dialect, mainline, uek)
	}
	for _, t := range stored.Tables {
		if _, twice := read.raw[t.Option]; twice {
			return fmt.Errorf("option %d is there twice", t.Option)
		}
		raw := rawTable{records: t.Records, size: t.RecordSize}
		switch {
		case t.Missing:
			raw = rawTable{err: os.NewSyscallError("getsockopt", syscall.ENOPROTOOPT)}
		case t.Error != "":
			raw = rawTable{err: storedError(t.Error)}
		case t.RecordSize <= 0:
			return fmt.Errorf("option %d: records of %d bytes", t.Option, t.RecordSize)
		case len(t.Records)%t.RecordSize != 0:
			return fmt.Errorf("option %d: %d bytes do not divide into records of %d", t.Option, len(t.Records), t.RecordSize)
		}
		read.raw[t.Option] = raw
	}
	*s = read
	return nil
}

// storedError is an error of another machine, quoted if it is not what a terminal should see.
func storedError(text string) error {
	if q := strconv.Quote(text); q != `"`+text+`"` {
		text = q
	}
	return errors.New(text)
}
