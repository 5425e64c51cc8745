package cmsg

import (
	"fmt"
	"math"

	"github.com/rdskit/rdskit/internal/abi"
)

// AppendINQ appends an RDS_CMSG_INQ, which only a UEK kernel sends.
func (e Encoder) AppendINQ(b []byte, n int) ([]byte, error) {
	if e.Dialect != UEK {
		return b, unsupported(e.Dialect, "INQ")
	}
	if n < 0 || n > math.MaxInt32 {
		return b, fmt.Errorf("cmsg: INQ of %d bytes: 0 to %d fit", n, math.MaxInt32)
	}
	b = e.begin(b, abi.UEK_RDS_CMSG_INQ, abi.UEK_SizeofInq)
	b = e.layout.AppendUint32(b, uint32(n))
	return appendPadding(b, e.layout, abi.UEK_SizeofInq), nil
}

// INQ decodes an RDS_CMSG_INQ: how many bytes wait in the receive queue. UEK
// adds it to each message if the socket option SO_RDS_INQ is set.
func (m Message) INQ() (int, error) {
	b, err := m.data(KindINQ, abi.UEK_SizeofInq)
	if err != nil {
		return 0, err
	}
	n := int32(m.layout.Uint32(b))
	if n < 0 {
		return 0, m.errorf(ErrMalformed, "%d bytes", n)
	}
	return int(n), nil
}
