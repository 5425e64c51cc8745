// Command rds-lab boots a small kernel with RDS and runs a command in it.
package main

import (
	"os"

	"github.com/rdskit/rdskit/internal/lab/guest"
	"github.com/rdskit/rdskit/internal/lab/keeper"
)

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
