package stress

import "github.com/rdskit/rdskit/internal/cli"

// version is what this side calls itself.
func version() string { return "rdskit " + cli.Version() }
