package main

import (
	"bufio"
	"io"

	"github.com/rdskit/rdskit/internal/cli"
)

// An output is a buffered stdout. The first error of writing holds for all that follows.
type output struct {
	*cli.Output
	buffer *bufio.Writer
}

func newOutput(w io.Writer) *output {
	b := bufio.NewWriterSize(w, 64<<10)
	return &output{cli.NewOutput(b), b}
}

// flush writes what is buffered.
func (o *output) flush() error {
	if err := o.Err(); err != nil {
		return err
	}
	if err := o.buffer.Flush(); err != nil {
		return &cli.WriteError{Err: err}
	}
	return nil
}
