package cmsg

import (
	"fmt"

	"github.com/rdskit/rdskit/internal/abi"
)

// Iterator walks over the messages of a control buffer, see [Parse].
type Iterator struct {
	oob     []byte
	next    int // offset of the next header in oob
	msg     Message
	err     error
	dialect Dialect
	layout  abi.Layout
}

// Parse returns an iterator over oob, the bytes of a control buffer that
// recvmsg filled or that sendmsg is to be given. It keeps oob and allocates
// nothing:
//
//	it := cmsg.Parse(dialect, oob)
//	for it.Next() {
//		m := it.Message()
//		…
//	}
//	if err := it.Err(); err != nil {
//		…
//	}
func Parse(d Dialect, oob []byte) Iterator {
	return Iterator{oob: oob, dialect: d}
}

// Next moves to the next message and reports whether there is one. It is false
// at the end of the buffer and at a header that cannot be followed; Err tells
// them apart.
func (it *Iterator) Next() bool {
	rest := it.oob[it.next:]
	if len(rest) == 0 || it.err != nil {
		return false
	}
	hdr := headerSize(it.layout)
	m := Message{offset: it.next, dialect: it.dialect, layout: it.layout}
	if len(rest) < hdr {
		it.err = m.errorf(ErrTruncated, "%d bytes left, a header has %d", len(rest), hdr)
		return false
	}
	var size uint64
	if it.layout.WordSize() == 8 {
		size = it.layout.Uint64(rest)
	} else {
		size = uint64(it.layout.Uint32(rest))
	}
	m.Level = int(int32(it.layout.Uint32(rest[hdr-8:])))
	m.Type = int(int32(it.layout.Uint32(rest[hdr-4:])))
	m.kind = kindOf(m.dialect, m.Level, m.Type)
	switch {
	case size < uint64(hdr):
		it.err = m.errorf(ErrMalformed, "length %d, the header alone has %d", size, hdr)
		return false
	case size > uint64(len(rest)):
		it.err = m.errorf(ErrTruncated, "length %d, %d bytes left", size, len(rest))
		return false
	}
	m.Data = rest[hdr:size:size]
	m.last = int(size) == len(rest)
	// The padding after the last message may be missing.
	it.next += min(align(int(size), it.layout), len(rest))
	it.msg = m
	return true
}

// Message returns the message that Next moved to.
func (it *Iterator) Message() Message { return it.msg }

// Raw returns the bytes of that message, with header and padding: a part of
// the buffer that can be parsed on its own.
func (it *Iterator) Raw() []byte { return it.oob[it.msg.offset:it.next:it.next] }

// Err returns nil at the end of the buffer, else a [*ParseError] that wraps
// [ErrTruncated] or [ErrMalformed]. The messages before it were sound.
func (it *Iterator) Err() error { return it.err }

// Message is one control message. Its methods named like a kind decode the
// data of that kind into a value that shares nothing with the buffer. They
// tolerate data longer than known, as newer kernels may write, and fail with a
// [*ParseError] if it is shorter, if a value in it cannot be, or if the
// message is of another kind.
type Message struct {
	Level int
	Type  int
	Data  []byte // aliases the control buffer; padding not included

	offset  int  // of the header in the control buffer
	last    bool // the message ends where the buffer ends
	kind    Kind
	dialect Dialect
	layout  abi.Layout
}

// Kind returns what the message is about, KindUnknown if the dialect does not
// know its level and type.
func (m Message) Kind() Kind { return m.kind }

// data returns the data of a message of the given kind if it has at least size
// bytes.
func (m Message) data(k Kind, size int) ([]byte, error) {
	if m.kind != k {
		return nil, m.errorf(ErrWrongKind, "decoded as %v", k)
	}
	if len(m.Data) < size {
		err := ErrMalformed
		if m.last {
			err = ErrTruncated
		}
		return nil, m.errorf(err, "%d bytes of data, %d are needed", len(m.Data), size)
	}
	return m.Data, nil
}

// errorf returns a ParseError about the message.
func (m Message) errorf(err error, format string, args ...any) error {
	return &ParseError{
		Offset: m.offset,
		Level:  m.Level,
		Type:   m.Type,
		Kind:   m.kind,
		Err:    fmt.Errorf("%w: "+format, append([]any{err}, args...)...),
	}
}
