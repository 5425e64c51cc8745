package flow

// An Account counts the messages of one or many flows, as one side sees them.
type Account struct {
	RequestsSent     uint64 `json:"requests_sent"`
	RequestsReceived uint64 `json:"requests_received"`
	AcksSent         uint64 `json:"acks_sent"`
	AcksReceived     uint64 `json:"acks_received"`

	// Bytes of messages, headers included.
	RequestBytesSent     uint64 `json:"request_bytes_sent"`
	RequestBytesReceived uint64 `json:"request_bytes_received"`
	AckBytesSent         uint64 `json:"ack_bytes_sent"`
	AckBytesReceived     uint64 `json:"ack_bytes_received"`

	// Reordered messages came behind later ones.
	Reordered  uint64 `json:"reordered"`
	Duplicated uint64 `json:"duplicated"`
	// Damaged messages are not as the peer sent them: payload, length or header.
	Damaged uint64 `json:"damaged"`
	// Foreign messages belong to no flow of the run, or answer nothing.
	Foreign uint64 `json:"foreign"`
	// GivenUp requests had no answer for so long that their place was given
	// to others.
	GivenUp uint64 `json:"given_up"`
	// Late of those were answered after all.
	Late uint64 `json:"late"`
}

// Add adds b to a.
func (a *Account) Add(b *Account) {
	a.RequestsSent += b.RequestsSent
	a.RequestsReceived += b.RequestsReceived
	a.AcksSent += b.AcksSent
	a.AcksReceived += b.AcksReceived
	a.RequestBytesSent += b.RequestBytesSent
	a.RequestBytesReceived += b.RequestBytesReceived
	a.AckBytesSent += b.AckBytesSent
	a.AckBytesReceived += b.AckBytesReceived
	a.Reordered += b.Reordered
	a.Duplicated += b.Duplicated
	a.Damaged += b.Damaged
	a.Foreign += b.Foreign
	a.GivenUp += b.GivenUp
	a.Late += b.Late
}

// Faults is how many messages were not as they should be, lost ones apart.
func (a *Account) Faults() uint64 {
	return a.Reordered + a.Duplicated + a.Damaged + a.Foreign + a.GivenUp - min(a.Late, a.GivenUp)
}
