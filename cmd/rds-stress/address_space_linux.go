package main

import (
	"fmt"
	"math"
	"syscall"
)

// leastAddressSpace is what the Go runtime may reserve on a machine of 64 bits, most of it never used, and some for the run,
// in bytes. With less it ends in the midst of a run.
const leastAddressSpace = 1500 << 20

func checkAddressSpace() error {
	var limit syscall.Rlimit
	if math.MaxInt == math.MaxInt32 || syscall.Getrlimit(syscall.RLIMIT_AS, &limit) != nil || limit.Cur >= leastAddressSpace {
		return nil
	}
	return fmt.Errorf("%d MiB of address space (ulimit -v) are too few: want %d MiB or more, most of which is never used; --max-memory bounds what is",
		limit.Cur>>20, leastAddressSpace>>20)
}
