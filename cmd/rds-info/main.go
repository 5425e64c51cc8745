// Command rds-info shows what the kernel's RDS knows. See rds-info(1).
package main

import (
	"context"
	"os"

	"github.com/rdskit/rdskit/internal/cli"
)

func main() {
	os.Exit(cli.Run(context.Background(), app(os.Stdout, os.Stderr), cli.Permute, os.Args))
}
