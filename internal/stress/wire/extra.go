package wire

import "encoding/binary"

// Extra is what two of rdskit put into messages without RDMA, where C has
// zeros: Acked is the sequence number of the request that an ack answers, CRC
// the checksum of the payload.
type Extra struct {
	Acked uint32
	CRC   uint32
}

// OffsetExtra is where in a header the Extra is, in bytes.
const OffsetExtra = offRDMAPattern

// PutExtra and ParseExtra access the Extra of a header.
func PutExtra(b []byte, e Extra) {
	h := (*common)(b)
	binary.BigEndian.PutUint32(h[OffsetExtra:], e.Acked)
	binary.BigEndian.PutUint32(h[OffsetExtra+4:], e.CRC)
}

func ParseExtra(b []byte) Extra {
	h := (*common)(b)
	return Extra{
		Acked: binary.BigEndian.Uint32(h[OffsetExtra:]),
		CRC:   binary.BigEndian.Uint32(h[OffsetExtra+4:]),
	}
}
