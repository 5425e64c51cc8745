// Package diagnose says which module of RDS is missing, what keeps it away, and
// how to get it. It looks at nothing itself: where modules and rules come from is
// its callers' business.
package diagnose

import (
	"fmt"

	"github.com/rdskit/rdskit/internal/module"
)

// Modules tells which modules are loaded, and the line that keeps one away. A
// module.System is one.
type Modules interface {
	Loaded(name string) bool
	Blocked(name string, aliases ...string) (module.Rule, bool)
	// Absent reports whether the kernel is known to come without the module.
	Absent(name string) bool
}

// A Missing is a module that is not loaded.
type Missing struct {
	Module string
	// Rule keeps it away if Ruled.
	Rule  module.Rule
	Ruled bool
	// Absent is whether the kernel comes without it.
	Absent bool
}

// Find returns what is known of a module that is not loaded.
func Find(m Modules, name string) Missing {
	rule, ruled := m.Blocked(name, module.Aliases(name)...)
	return Missing{name, rule, ruled, m.Absent(name)}
}

// Transport returns the module that a local address lacks if no transport serves it, false
// if all are loaded.
func Transport(m Modules) (Missing, bool) {
	for _, name := range []string{"rds_tcp", "rds_rdma"} {
		if !m.Loaded(name) {
			return Find(m, name), true
		}
	}
	return Missing{}, false
}

// Blocked reports whether modprobe would refuse to load the module, too. A
// blacklisted module only is not loaded by itself.
func (m Missing) Blocked() bool { return m.Ruled && !m.Rule.Blacklisted() }

// Because is what keeps the module away, as the end of a sentence that says
// that it is not loaded; empty if nothing does.
func (m Missing) Because() string {
	switch {
	case m.Absent:
		return ", and this kernel comes without it"
	case m.Blocked():
		return fmt.Sprintf(", and %v stops it from being loaded", m.Rule)
	case m.Ruled:
		return fmt.Sprintf(", and %v stops the kernel from loading it by itself", m.Rule)
	}
	return ""
}

// Remedy is the command that loads the module, and what is to be done before.
func (m Missing) Remedy() string {
	switch {
	case m.Absent:
		return install
	case m.Blocked():
		return fmt.Sprintf("remove line %d of %s, then %s", m.Rule.Line, m.Rule.File, m.command())
	}
	return m.command()
}

// install gets a module that the kernel comes without.
const install = "install the package with more modules of this kernel, linux-modules-extra-$(uname -r) on Ubuntu or kernel-modules-extra on Fedora and RHEL, or boot a kernel that has it"

func (m Missing) command() string {
	switch m.Module {
	case "rds":
		return "modprobe rds_tcp or rds_rdma, which bring it along"
	case "rds_tcp":
		return "modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE"
	}
	return "modprobe " + m.Module
}

// Explain is cause and remedy as the end of a sentence that says that the module
// is not loaded. hint is a further way to get it, where nothing keeps it away.
func (m Missing) Explain(hint string) string {
	switch {
	case m.Absent:
		return m.Because() + ": " + install
	case m.Blocked():
		return m.Because() + ": remove that line, then " + m.command()
	case m.Ruled:
		return m.Because() + " (" + m.command() + " all the same)"
	}
	return " (" + m.command() + hint + ")"
}
