package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/diagnose"
	"github.com/rdskit/rdskit/internal/info"
	"github.com/rdskit/rdskit/internal/module"
	"github.com/rdskit/rdskit/rdsinfo"
)

var errEmptyName = errors.New("the name is empty")

// nameValue is a name that is not empty: an empty one, as of a variable that is not set, would
// look like none.
type nameValue string

func (v *nameValue) Set(text string) error {
	if text == "" {
		return errEmptyName
	}
	*v = nameValue(text)
	return nil
}

func (v *nameValue) String() string {
	if v == nil {
		return ""
	}
	return string(*v)
}

// layoutValue is the value of --layout.
type layoutValue struct {
	layout info.Layout
	set    bool
}

func (v *layoutValue) Set(text string) error {
	for _, l := range []info.Layout{info.Layout20, info.Layout23} {
		if text == l.String() {
			v.layout, v.set = l, true
			return nil
		}
	}
	return fmt.Errorf("want %s or %s", info.Layout20, info.Layout23)
}

func (v *layoutValue) String() string {
	if !v.set {
		return ""
	}
	return v.layout.String()
}

// Completions are the releases.
func (v *layoutValue) Completions() []string {
	return []string{info.Layout20.String(), info.Layout23.String()}
}

// of is the layout for a snapshot: the one asked for, or that of its kernel.
func (v *layoutValue) of(s *rdsinfo.Snapshot) info.Layout {
	if v.set {
		return v.layout
	}
	return info.LayoutOf(s)
}

// fieldList is the value of -o.
type fieldList struct{ names []string }

func (v *fieldList) Set(text string) error {
	for name := range strings.SplitSeq(text, ",") {
		name = strings.ToLower(strings.TrimSpace(name))
		if !slices.Contains(info.FieldNames(), name) {
			return fmt.Errorf("no field %q: want some of %s", name, strings.Join(info.FieldNames(), ", "))
		}
		v.names = append(v.names, name)
	}
	return nil
}

// Completions are the names of the fields.
func (v *fieldList) Completions() []string { return info.FieldNames() }

func (v *fieldList) String() string { return strings.Join(v.names, ",") }

// filterValue is the value of --filter. Given again, all of them hold.
type filterValue struct{ info.Filter }

func (v *filterValue) Set(text string) error {
	f, err := info.ParseFilter(text)
	if err != nil {
		return err
	}
	v.Filter = v.And(f)
	return nil
}

// Completions are the keys.
func (v *filterValue) Completions() []string {
	keys := info.FilterKeys()
	for i := range keys {
		keys[i] += "="
	}
	return keys
}

// thresholdValue is the value of --warning and --critical.
type thresholdValue struct{ *info.Threshold }

func (v *thresholdValue) Set(text string) (err error) {
	v.Threshold, err = info.ParseThreshold(text)
	return err
}

func isNoTable(err error) bool { return errors.Is(err, rdsinfo.ErrNoTable) }

// explainSocket says what keeps a socket from being made, in the words of the C
// tools first.
func explainSocket(err error) error {
	var errno syscall.Errno
	if !errors.As(err, &errno) || isSetNS(err) {
		return err
	}
	hint := ""
	if errno == syscall.EAFNOSUPPORT {
		hint = ": the module rds is not loaded" + diagnose.Find(module.System{}, "rds").Explain(", or give --load")
	}
	return &cli.ExitError{Status: cli.CannotTry, Err: errors.New("Unable to create socket: " + cText(errno) + hint)}
}

func isSetNS(err error) bool {
	se, ok := errors.AsType[*os.SyscallError](err)
	return ok && se.Syscall == "setns"
}

// explainNetNS says what keeps a network namespace from being entered, if that is what err is.
func explainNetNS(name string, err error) error {
	switch {
	case !isSetNS(err):
		return err
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("network namespace %s: %w: run it as root", name, err)
	case errors.Is(err, syscall.EINVAL):
		return fmt.Errorf("%s: %w: it is a namespace of another kind than of the network", name, err)
	}
	return fmt.Errorf("network namespace %s: %w", name, err)
}

// cText is the text of an errno in C, which begins with a capital letter.
func cText(errno syscall.Errno) string {
	text := errno.Error()
	return strings.ToUpper(text[:1]) + text[1:]
}
