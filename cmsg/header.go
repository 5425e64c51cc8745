package cmsg

import "github.com/rdskit/rdskit/internal/abi"

// A header, struct cmsghdr, is a length of one word, the level and the type of
// 4 bytes each. The length counts the header and the data; the next header
// starts at the following multiple of a word (CMSG_ALIGN in linux/socket.h).

// headerSize returns sizeof(struct cmsghdr), a multiple of a word.
func headerSize(l abi.Layout) int { return l.WordSize() + 8 }

// align rounds n up to a multiple of a word.
func align(n int, l abi.Layout) int {
	w := l.WordSize()
	return (n + w - 1) &^ (w - 1)
}

// appendHeader appends the header of a message at level SOL_RDS that has size
// bytes of data.
func appendHeader(b []byte, l abi.Layout, level, typ, size int) []byte {
	n := headerSize(l) + size
	if l.WordSize() == 8 {
		b = l.AppendUint64(b, uint64(n))
	} else {
		b = l.AppendUint32(b, uint32(n))
	}
	b = l.AppendUint32(b, uint32(level))
	return l.AppendUint32(b, uint32(typ))
}

// appendPadding appends what separates size bytes of data from the next
// message.
func appendPadding(b []byte, l abi.Layout, size int) []byte {
	var zero [8]byte
	return append(b, zero[:align(size, l)-size]...)
}
