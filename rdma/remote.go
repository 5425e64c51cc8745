package rdma

import (
	"encoding"
	"encoding/binary"
	"fmt"

	"github.com/rdskit/rdskit/cmsg"
)

// A Remote is memory of a peer, as its owner describes it: keys of 1 MiB each in
// turn, the last of what is left.
type Remote struct {
	Keys []cmsg.Key
	Len  int64 // in bytes
}

// RemoteOf is memory of size bytes behind one key, as a message brought it.
func RemoteOf(key cmsg.Key, size int) Remote {
	return Remote{Keys: []cmsg.Key{key}, Len: int64(size)}
}

var (
	_ encoding.BinaryAppender    = Remote{}
	_ encoding.BinaryMarshaler   = Remote{}
	_ encoding.BinaryUnmarshaler = (*Remote)(nil)
)

// AppendBinary appends the length and the keys, each 8 bytes, big endian.
func (r Remote) AppendBinary(b []byte) ([]byte, error) {
	if err := r.check(); err != nil {
		return b, prefix(err)
	}
	b = binary.BigEndian.AppendUint64(b, uint64(r.Len))
	for _, key := range r.Keys {
		b = binary.BigEndian.AppendUint64(b, uint64(key))
	}
	return b, nil
}

// MarshalBinary is AppendBinary to nothing.
func (r Remote) MarshalBinary() ([]byte, error) { return r.AppendBinary(nil) }

// UnmarshalBinary reads what AppendBinary wrote, which must be all of b.
func (r *Remote) UnmarshalBinary(b []byte) error {
	if len(b) < 16 || len(b)%8 != 0 {
		return fmt.Errorf("rdma: %d bytes are no description of remote memory", len(b))
	}
	got := Remote{Len: int64(binary.BigEndian.Uint64(b)), Keys: make([]cmsg.Key, 0, len(b)/8-1)}
	for b = b[8:]; len(b) > 0; b = b[8:] {
		got.Keys = append(got.Keys, cmsg.Key(binary.BigEndian.Uint64(b)))
	}
	if err := got.check(); err != nil {
		return prefix(err)
	}
	*r = got
	return nil
}

func (r Remote) check() error {
	if r.Len <= 0 {
		return refuse(ErrRange, "remote memory of %d bytes", r.Len)
	}
	if want := (r.Len-1)/MaxOperation + 1; int64(len(r.Keys)) != want {
		return refuse(ErrRange, "remote memory of %d bytes has %d keys, and not %d", r.Len, want, len(r.Keys))
	}
	for i, key := range r.Keys {
		if key == 0 {
			return refuse(ErrNotRegistered, "key %d of remote memory is 0", i)
		}
	}
	return nil
}
