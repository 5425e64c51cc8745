// Command rds-lab boots a small kernel with RDS and runs a command in it.
package main

import (
	"os"
	"runtime"

	"github.com/rdskit/rdskit/internal/lab/guest"
	"github.com/rdskit/rdskit/internal/lab/keeper"
)

// The main goroutine keeps the main thread, so that no other goroutine takes
// the thread that /proc/1 shows into another namespace.
func init() { runtime.LockOSThread() }

func main() {
	// The launcher's binary is also the guest's init and the machine's keeper.
	switch {
	case guest.IsInit():
		guest.Main()
	case keeper.IsKeeper():
		keeper.Main()
	}
	os.Exit(run(os.Args))
}
