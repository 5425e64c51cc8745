package rdsinfo

import (
	"encoding/binary"
	"testing"

	"github.com/rdskit/rdskit/internal/abi"
)

func FuzzCounters(f *testing.F)        { fuzzTable(f, Counters) }
func FuzzConnections(f *testing.F)     { fuzzTable(f, Connections) }
func FuzzSockets(f *testing.F)         { fuzzTable(f, Sockets) }
func FuzzReceiveQueue(f *testing.F)    { fuzzTable(f, ReceiveQueue) }
func FuzzTCPSockets(f *testing.F)      { fuzzTable(f, TCPSockets) }
func FuzzIBConnections(f *testing.F)   { fuzzTable(f, IBConnections) }
func FuzzConnectionPaths(f *testing.F) { fuzzTable(f, ConnectionPaths) }

// fuzzTable decodes both forms of a table at once, with records of any size.
// Each whole record is a row, in any layout.
func fuzzTable(f *testing.F, table Table) {
	opts := options(table)
	for _, name := range captures {
		s := readCapture(f, name)
		v4, v6 := s.raw[opts[0]], s.raw[opts[len(opts)-1]]
		f.Add(v4.records, uint16(v4.size), v6.records, uint16(v6.size))
	}
	for _, size := range sizes[opts[0]] {
		f.Add(make([]byte, size), uint16(size), []byte(nil), uint16(0))
	}
	f.Fuzz(func(t *testing.T, records4 []byte, size4 uint16, records6 []byte, size6 uint16) {
		if size4 == 0 || size6 == 0 {
			return // Socket.Info refuses it
		}
		for _, layout := range []abi.Layout{amd64, abi.LayoutOf(4, 4, binary.LittleEndian), abi.LayoutOf(8, 8, binary.BigEndian)} {
			s := &Snapshot{layout: layout, raw: map[int]rawTable{
				opts[0]: {records: records4, size: int(size4)},
			}}
			if len(opts) > 1 {
				s.raw[opts[1]] = rawTable{records: records6, size: int(size6)}
			}
			rows, err := tableRows(s, table)
			if err != nil {
				continue
			}
			if most := len(records4)/int(size4) + len(records6)/int(size6); lenOf(rows) > most {
				t.Errorf("%d rows of %d records", lenOf(rows), most)
			}
		}
	})
}
