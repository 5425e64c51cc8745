package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// A WriteError says that output did not reach where it was sent, so that what was printed is not whole.
type WriteError struct{ Err error }

func (e *WriteError) Error() string { return "cannot write the output: " + e.Err.Error() }

// Unwrap returns Err.
func (e *WriteError) Unwrap() error { return e.Err }

// writeError is a WriteError of err, or err if it is one.
func writeError(err error) error {
	if isWriteError(err) {
		return err
	}
	return &WriteError{err}
}

func isWriteError(err error) bool {
	var w *WriteError
	return errors.As(err, &w)
}

// Output passes on what is written and keeps the first error, so that a command
// may print freely and ask once, at its end or in its loop, whether
// it was heard. After an error nothing more is written.
//
// An Output is not safe for concurrent use.
type Output struct {
	w   io.Writer
	err error
}

// NewOutput returns an Output that writes to w.
func NewOutput(w io.Writer) *Output { return &Output{w: w} }

// Write implements io.Writer. Its error is a [*WriteError].
func (o *Output) Write(b []byte) (int, error) {
	if o.err != nil {
		return 0, o.err
	}
	n, err := o.w.Write(b)
	if err != nil {
		o.err = &WriteError{err}
	}
	return n, o.err
}

// Err returns the first error of Write, nil if there was none.
func (o *Output) Err() error { return o.err }

// JSONLines writes one JSON object a line, each with a single Write, so that
// a reader never sees half a line and nothing waits in a buffer.
type JSONLines struct {
	w   io.Writer
	buf bytes.Buffer
	enc *json.Encoder
}

// NewJSONLines returns a JSONLines that writes to w.
func NewJSONLines(w io.Writer) *JSONLines {
	j := &JSONLines{w: w}
	j.enc = json.NewEncoder(&j.buf)
	j.enc.SetEscapeHTML(false)
	return j
}

// Write writes v as one line. NaN and infinite numbers are errors of
// encoding/json: what has no value is null.
func (j *JSONLines) Write(v any) error {
	j.buf.Reset()
	if err := j.enc.Encode(v); err != nil {
		return err
	}
	_, err := j.w.Write(j.buf.Bytes())
	return err
}
