//go:build !linux

// Command rds-lab boots a small kernel with RDS and runs a command in it.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "rds-lab: virtual machines for the lab need Linux")
	os.Exit(125)
}
