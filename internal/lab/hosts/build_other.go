//go:build !linux

package hosts

import (
	"errors"

	"github.com/rdskit/rdskit/internal/lab/netem"
)

var errLinux = errors.New("network namespaces need Linux")

// Build fails: network namespaces need Linux.
func Build(int) error { return errLinux }

// BuildHCAs fails: network devices need Linux.
func BuildHCAs() error { return errLinux }

// BuildMachine fails: network devices need Linux.
func BuildMachine(int) error { return errLinux }

// SetLink fails: network namespaces need Linux.
func (h Host) SetLink(bool) error { return errLinux }

// SetNetem fails: network namespaces need Linux.
func (h Host) SetNetem(netem.Spec) error { return errLinux }

// ClearNetem fails: network namespaces need Linux.
func (h Host) ClearNetem() error { return errLinux }

// Enter fails: network namespaces need Linux.
func (h Host) Enter() error { return errLinux }

// Do fails: network namespaces need Linux.
func (h Host) Do(func() error) error { return errLinux }

// SetAway fails: network namespaces need Linux.
func (h Host) SetAway(Host, bool) error { return errLinux }

// SetDrop fails: network namespaces need Linux.
func (h Host) SetDrop(uint16, bool) error { return errLinux }

// SetDeaf fails: network namespaces need Linux.
func (h Host) SetDeaf(bool) error { return errLinux }
