package cmsg

import "github.com/rdskit/rdskit/internal/abi"

// Encoder appends control messages to a buffer, each with its header and its
// padding, so that the result can be given to sendmsg as it is. The zero value
// encodes for mainline kernels. Nothing is allocated while the buffer has
// room; [Kind.Space] tells how much that is.
//
// Methods return an error, and the buffer as it was, where the dialect has no
// such message (errors.Is(err, errors.ErrUnsupported)) or the value does not
// fit into one. The messages that only the kernel sends are there for those
// who stand in for a kernel in a test.
type Encoder struct {
	Dialect Dialect

	layout abi.Layout
}

// begin appends the header of a message at level SOL_RDS.
func (e Encoder) begin(b []byte, typ, size int) []byte {
	return appendHeader(b, e.layout, abi.SOL_RDS, typ, size)
}
