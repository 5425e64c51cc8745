// Command rds-ping sends RDS pings to hosts and says how long the answers take.
// See rds-ping(1).
package main

import (
	"context"
	"os"

	"github.com/rdskit/rdskit/internal/cli"
)

func main() {
	o := newOptions(os.Stdout, os.Stderr, cli.IsTerminal(os.Stdout))
	os.Exit(cli.Run(context.Background(), o.app(), cli.Permute, os.Args))
}
