package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/rdsinfo"
)

func snapshotCommand() *cli.Command {
	var s source
	var tcp bool
	return &cli.Command{
		Name:      "snapshot",
		Usage:     "write all tables, sysctls and module parameters to FILE, for --from and diff",
		ArgsUsage: "FILE",
		Flags: append(s.flags()[:2:2],
			&cli.BoolFlag{Name: "tcp-info", Destination: &tcp, Usage: "how TCP fares too, for which the kernel may load tcp_diag; without, only if that is loaded"}),
		Description: "A FILE of - is stdout. An existing FILE is replaced, once all is written.",
		Action: func(c *cli.Context) error {
			if c.Args().Len() != 1 || c.Args().First() == "" {
				return &cli.UsageError{Reason: "want the name of one FILE to write"}
			}
			// Without RDS the bundle tells why there is none.
			return s.enter(func(cfg *rdsinfo.Config) error {
				if s.load {
					_, _ = rdsinfo.Read(cfg, rdsinfo.Counters) // the bundle has the error
				}
				cfg.TCPHealth = tcp
				b, err := rdsinfo.Collect(c.Context, cfg)
				if err != nil {
					if tcp {
						err = explainTCPInfo(err)
					}
					return err
				}
				if b.SocketError != "" {
					fmt.Fprintf(c.App.ErrWriter, "rds-info: the bundle has no tables, since no RDS socket can be made: %s\n", b.SocketError)
				}
				return writeBundle(b, c.Args().First())
			})
		},
	}
}

func write(text *bytes.Buffer, f *os.File) error {
	if _, err := text.WriteTo(f); err != nil {
		return &cli.WriteError{Err: err}
	}
	return nil
}

// writeBundle leaves no half a bundle behind, and an old one whole if it fails.
func writeBundle(b *rdsinfo.Bundle, name string) (err error) {
	var text bytes.Buffer
	if err := b.Write(&text); err != nil {
		return err
	}
	if name == "-" {
		return write(&text, os.Stdout)
	}
	// A device or a pipe is written to, not replaced.
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer f.Close()
		return write(&text, f)
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+".*")
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return &fs.PathError{Op: "create", Path: name, Err: pe.Err}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	err = write(&text, f)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	return err
}
