package main

import (
	"fmt"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/info"
	"github.com/rdskit/rdskit/rdsinfo"
)

func diffCommand(out *output) *cli.Command {
	var json bool
	return &cli.Command{
		Name:      "diff",
		Usage:     "show what became of RDS from one bundle to another",
		ArgsUsage: "FILE FILE",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "json", Destination: &json, Usage: "print JSON, one object a line"},
		},
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 2 {
				return &cli.UsageError{Reason: "want two FILEs, the earlier first"}
			}
			earlier, err := readBundle(c.Args().Get(0))
			if err != nil {
				return err
			}
			later, err := readBundle(c.Args().Get(1))
			if err != nil {
				return err
			}
			if earlier.Snapshot.Time.After(later.Snapshot.Time) {
				return fmt.Errorf("%s is of a later time than %s: give the earlier first", c.Args().Get(0), c.Args().Get(1))
			}
			for i, b := range []*rdsinfo.Bundle{earlier, later} {
				if b.SocketError != "" {
					fmt.Fprintf(c.App.ErrWriter, "rds-info: %s: it has no tables, so that only settings are compared; rds-info doctor --from tells why\n", c.Args().Get(i))
				}
			}
			d := info.CompareBundles(earlier, later)
			if json {
				lines := cli.NewJSONLines(out)
				for _, record := range d.Records() {
					if err := lines.Write(record); err != nil {
						return err
					}
				}
			} else if err := d.Print(out); err != nil {
				return err
			}
			return out.flush()
		},
	}
}
