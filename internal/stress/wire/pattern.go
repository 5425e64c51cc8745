package wire

// AppendPattern appends the first n bytes of the payload that the C tool sends
// with -v, the same in each message. Each block of 256 bytes differs from that before.
func AppendPattern(b []byte, n int) []byte {
	k := uint32(11)
	for i := range uint32(n) {
		b = append(b, byte(k))
		k = 41*(k+3) + (i+1)>>8
	}
	return b
}

// Strides is how many payloads differ between two of rdskit.
const Strides = 251

// Shift is where in a longer pattern the payload of message seq begins, so that
// the payload of another message, or of another place in it, does not pass for it.
func Shift(seq uint32) int { return int(seq % Strides) }
