package cmsg

import "github.com/rdskit/rdskit/internal/abi"

// AsyncSend is UEK's struct rds_asend_args: it asks for an RDMAStatus of an
// ordinary message.
type AsyncSend struct {
	Token uint64 // comes back in the RDMAStatus
	Flags Flags  // FlagSendNotifyMe
}

// AppendAsyncSend appends an RDS_CMSG_ASYNC_SEND. Mainline has none.
func (e Encoder) AppendAsyncSend(b []byte, a AsyncSend) ([]byte, error) {
	if e.Dialect != UEK {
		return b, unsupported(e.Dialect, "async send")
	}
	b = e.begin(b, abi.UEK_RDS_CMSG_ASYNC_SEND, abi.UEK_SizeofAsendArgs)
	b = e.layout.AppendUint64(b, a.Token)
	return e.layout.AppendUint64(b, uint64(a.Flags)), nil
}

// AsyncSend decodes an RDS_CMSG_ASYNC_SEND.
func (m Message) AsyncSend() (AsyncSend, error) {
	b, err := m.data(KindAsyncSend, abi.UEK_SizeofAsendArgs)
	if err != nil {
		return AsyncSend{}, err
	}
	return AsyncSend{
		Token: m.layout.Uint64(b),
		Flags: Flags(m.layout.Uint64(b[8:])),
	}, nil
}
