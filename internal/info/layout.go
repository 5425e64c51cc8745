package info

import (
	"fmt"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/rdsinfo"
)

// A Layout is the C release whose text a printer prints.
type Layout int

const (
	// Layout20 is that of rds-info 2.0, for mainline kernels.
	Layout20 Layout = iota
	// Layout23 is that of rds-info 2.3, which has columns for what UEK kernels report.
	Layout23
)

// String returns "2.0" or "2.3".
func (l Layout) String() string {
	switch l {
	case Layout20:
		return "2.0"
	case Layout23:
		return "2.3"
	}
	return fmt.Sprintf("Layout(%d)", int(l))
}

// LayoutOf returns the layout of the C tools that were made for the kernel of a
// snapshot.
func LayoutOf(s *rdsinfo.Snapshot) Layout {
	if s.Dialect == cmsg.UEK {
		return Layout23
	}
	return Layout20
}
