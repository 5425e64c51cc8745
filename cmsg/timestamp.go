package cmsg

import (
	"time"

	"github.com/rdskit/rdskit/internal/abi"
)

// sizeofTimeval64 is a struct timeval of two 64-bit fields.
const sizeofTimeval64 = 16

// AppendTimestamp appends an SO_TIMESTAMP in its newer form, SO_TIMESTAMP_NEW,
// cutting t down to microseconds. Only the kernel sends it.
func (e Encoder) AppendTimestamp(b []byte, t time.Time) []byte {
	b = appendHeader(b, e.layout, abi.SOL_SOCKET, abi.SO_TIMESTAMP_NEW, sizeofTimeval64)
	b = e.layout.AppendUint64(b, uint64(t.Unix()))
	return e.layout.AppendUint64(b, uint64(t.Nanosecond()/1000))
}

// Timestamp decodes an SO_TIMESTAMP: when the message arrived, by the wall
// clock, in microseconds. That is what a socket with SO_TIMESTAMPNS gets too
// (rds_cmsg_recv in net/rds/recv.c). The older form has fields of 32 bits for
// 32-bit programs, else both have 64.
func (m Message) Timestamp() (time.Time, error) {
	old32 := m.Type == abi.SO_TIMESTAMP_OLD && m.layout.WordSize() == 4 && len(m.Data) < sizeofTimeval64
	need := sizeofTimeval64
	if old32 {
		need = 8
	}
	b, err := m.data(KindTimestamp, need)
	if err != nil {
		return time.Time{}, err
	}
	var sec, usec int64
	if old32 {
		sec, usec = int64(int32(m.layout.Uint32(b))), int64(int32(m.layout.Uint32(b[4:])))
	} else {
		sec, usec = int64(m.layout.Uint64(b)), int64(m.layout.Uint64(b[8:]))
	}
	if usec < 0 || usec >= 1e6 {
		return time.Time{}, m.errorf(ErrMalformed, "%d microseconds", usec)
	}
	return time.Unix(sec, usec*1000), nil
}
