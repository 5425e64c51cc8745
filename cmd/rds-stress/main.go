// Command rds-stress loads RDS between two hosts, checks every message, and measures.
// See rds-stress(1).
package main

import (
	"context"
	"os"

	"github.com/rdskit/rdskit/internal/cli"
)

func main() {
	o := newOptions(os.Stdout, os.Stderr)
	os.Exit(cli.Run(context.Background(), o.app(), cli.Permute, os.Args))
}
