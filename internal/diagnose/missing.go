// Package diagnose says which module of RDS is missing, what keeps it away, and
// how to get it. It looks at nothing itself: where modules and rules come from is
// its callers' business.
package diagnose

import (
	"fmt"
	"strings"

	"github.com/rdskit/rdskit/internal/module"
	"github.com/rdskit/rdskit/internal/shell"
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

// Remedy is a command that loads the module or, where that cannot be, leads to what keeps it away; and
// advice on it, which may be empty.
func (m Missing) Remedy() (command, advice string) {
	load := "modprobe " + m.Module
	switch m.Module {
	case "rds":
		load, advice = "modprobe rds_tcp", "or rds_rdma, for InfiniBand and RoCE; each brings rds along"
	case "rds_tcp":
		advice = "or rds_rdma, for InfiniBand and RoCE"
	}
	switch {
	case m.Absent:
		return "dnf install kernel-modules-extra-$(uname -r) || apt-get install linux-modules-extra-$(uname -r)",
			"the package with more modules of this kernel; or boot a kernel that has them"
	case m.Blocked():
		lift, then := m.Lift()
		if m.Rule.UntilReboot() {
			return lift, then
		}
		return lift + " && " + load, advice
	}
	return load, advice
}

// Lift is a command that takes away the rule that blocks the module or, where that cannot be told, finds
// where it is set; and what is to be done then.
func (m Missing) Lift() (command, advice string) {
	r := m.Rule
	switch {
	case r.Line > 0:
		command = fmt.Sprintf("sed -i '%ds/^/# /' %s", r.Line, shell.Quote(r.File))
		if r.DisablesAll() {
			advice = "then boot again: until then the kernel loads no module at all"
		}
	case r.OnCommandLine():
		name, _, _ := strings.Cut(r.Text, "=")
		command = "grep -rs " + shell.Quote(name) + " /etc/default/grub /etc/default/grub.d /etc/kernel/cmdline /boot/loader/entries"
		advice = fmt.Sprintf("finds where the boot loader has it: take %s out of it there, with grubby on Oracle Linux and RHEL, before update-grub on Debian and Ubuntu, and boot again", m.Module)
	default:
		command = "grep -rs modules_disabled /etc /usr/lib/sysctl.d /usr/lib/systemd/system"
		advice = "finds what sets it: take it out there and boot again, for until then the kernel loads no module at all"
	}
	return command, advice
}

// install gets a module that the kernel comes without.
const install = "install the package with more modules of this kernel, linux-modules-extra-$(uname -r) on Ubuntu or kernel-modules-extra on Fedora and RHEL, or boot a kernel that has it"

func (m Missing) load() string {
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
	case m.Blocked() && m.Rule.UntilReboot():
		return m.Because() + ": remove that, and boot again"
	case m.Blocked():
		return m.Because() + ": remove that line, then " + m.load()
	case m.Ruled:
		return m.Because() + " (" + m.load() + " all the same)"
	}
	return " (" + m.load() + hint + ")"
}
