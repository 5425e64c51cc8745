// Command rds-lab boots a small kernel with RDS in a virtual machine and runs
// a command in it. See rds-lab(1).
package main

import (
	"context"
	"os"
	"runtime"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/lab/guest"
	"github.com/rdskit/rdskit/internal/lab/keeper"
)

// The main goroutine keeps the main thread: no other goroutine takes the thread
// that /proc/1 shows into another namespace.
func init() { runtime.LockOSThread() }

func main() {
	// The launcher's program is also the guest's init and the machine's keeper.
	switch {
	case guest.IsInit():
		guest.Main()
	case keeper.IsKeeper():
		keeper.Main()
	}
	os.Exit(cli.Run(context.Background(), app(), cli.StopAtOperand, os.Args))
}
