package cmsg

import "github.com/rdskit/rdskit/internal/abi"

// Dialect says which kernel's numbering a control message is in. The zero
// value is Mainline. Which one the running kernel speaks cannot be told from a
// control message; rdssock finds it out with a read-only probe.
type Dialect = abi.Dialect

const (
	// Mainline is the numbering of kernel.org and of the distributions that
	// follow it.
	Mainline = abi.Mainline
	// UEK is the numbering of Oracle's Unbreakable Enterprise Kernel. What is
	// said of it here comes from its header and sources; it was not yet seen
	// on a kernel.
	UEK = abi.UEK
)
