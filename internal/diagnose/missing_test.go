package diagnose

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/module"
)

// modules are those that are loaded, and rules by the module that they block.
type modules struct {
	loaded []string
	rules  map[string]module.Rule
	absent []string
}

func (m modules) Loaded(name string) bool { return slices.Contains(m.loaded, name) }

func (m modules) Blocked(name string, _ ...string) (module.Rule, bool) {
	r, ok := m.rules[name]
	return r, ok
}

func (m modules) Absent(name string) bool { return slices.Contains(m.absent, name) }

func TestTheTransportThatIsMissing(t *testing.T) {
	blacklist := module.Rule{File: "/etc/modprobe.d/a.conf", Line: 3, Text: "blacklist rds_tcp"}
	install := module.Rule{File: "/etc/modprobe.d/b.conf", Line: 1, Text: "install rds_tcp /bin/false"}
	boot := module.Rule{File: "/proc/cmdline", Text: "module_blacklist=rds_tcp,sctp"}
	sysctl := module.Rule{File: "/etc/sysctl.d/99.conf", Line: 2, Text: "kernel.modules_disabled=1"}
	const or = "or rds_rdma, for InfiniBand and RoCE"
	for _, tt := range []struct {
		name                            string
		modules                         modules
		because, command, advice, prose string
		none                            bool
	}{
		{name: "none is loaded: rds_tcp is", modules: modules{},
			command: "modprobe rds_tcp", advice: or,
			prose: " (modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE, or else)"},
		{name: "rds_tcp is loaded: rds_rdma is", modules: modules{loaded: []string{"rds_tcp"}},
			command: "modprobe rds_rdma", prose: " (modprobe rds_rdma, or else)"},
		{name: "both are loaded: none is", modules: modules{loaded: []string{"rds_tcp", "rds_rdma"}}, none: true},
		{name: "a blacklist does not stop modprobe", modules: modules{rules: map[string]module.Rule{"rds_tcp": blacklist}},
			because: `, and "blacklist rds_tcp" in /etc/modprobe.d/a.conf, line 3 stops the kernel from loading it by itself`,
			command: "modprobe rds_tcp", advice: or,
			prose: `, and "blacklist rds_tcp" in /etc/modprobe.d/a.conf, line 3 stops the kernel from loading it by itself (modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE all the same)`},
		{name: "an install line does", modules: modules{rules: map[string]module.Rule{"rds_tcp": install}},
			because: `, and "install rds_tcp /bin/false" in /etc/modprobe.d/b.conf, line 1 stops it from being loaded`,
			command: "sed -i '1s/^/# /' /etc/modprobe.d/b.conf && modprobe rds_tcp", advice: or,
			prose: `, and "install rds_tcp /bin/false" in /etc/modprobe.d/b.conf, line 1 stops it from being loaded: remove that line, then modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE`},
		{name: "the kernel's command line does", modules: modules{rules: map[string]module.Rule{"rds_tcp": boot}},
			because: `, and "module_blacklist=rds_tcp,sctp" on the kernel's command line stops it from being loaded`,
			command: "grep -rs module_blacklist /etc/default/grub /etc/default/grub.d /etc/kernel/cmdline /boot/loader/entries",
			advice:  "finds where the boot loader has it: take rds_tcp out of it there, with grubby on Oracle Linux and RHEL, before update-grub on Debian and Ubuntu, and boot again",
			prose:   `, and "module_blacklist=rds_tcp,sctp" on the kernel's command line stops it from being loaded: remove that, and boot again`},
		{name: "a sysctl does", modules: modules{rules: map[string]module.Rule{"rds_tcp": sysctl}},
			because: `, and "kernel.modules_disabled=1" in /etc/sysctl.d/99.conf, line 2 stops it from being loaded`,
			command: "sed -i '2s/^/# /' /etc/sysctl.d/99.conf", advice: "then boot again: until then the kernel loads no module at all",
			prose: `, and "kernel.modules_disabled=1" in /etc/sysctl.d/99.conf, line 2 stops it from being loaded: remove that, and boot again`},
		{name: "a sysctl that nobody knows who set does", modules: modules{rules: map[string]module.Rule{"rds_tcp": {File: "/proc/sys/kernel/modules_disabled", Text: "kernel.modules_disabled=1"}}},
			because: `, and "kernel.modules_disabled=1" stops it from being loaded`,
			command: "grep -rs modules_disabled /etc /usr/lib/sysctl.d /usr/lib/systemd/system", advice: "finds what sets it: take it out there and boot again, for until then the kernel loads no module at all",
			prose: `, and "kernel.modules_disabled=1" stops it from being loaded: remove that, and boot again`},
		{name: "what the kernel comes without cannot be loaded", modules: modules{absent: []string{"rds_tcp"}, rules: map[string]module.Rule{"rds_tcp": install}},
			because: ", and this kernel comes without it",
			command: "dnf install kernel-modules-extra-$(uname -r) || apt-get install linux-modules-extra-$(uname -r)",
			advice:  "the package with more modules of this kernel; or boot a kernel that has them",
			prose:   ", and this kernel comes without it: install the package with more modules of this kernel, linux-modules-extra-$(uname -r) on Ubuntu or kernel-modules-extra on Fedora and RHEL, or boot a kernel that has it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, ok := Transport(tt.modules)
			if ok == tt.none {
				t.Fatalf("missing: %v", ok)
			}
			if !ok {
				return
			}
			command, advice := m.Remedy()
			got := []string{m.Because(), command, advice, m.Explain(", or else")}
			if diff := cmp.Diff([]string{tt.because, tt.command, tt.advice, tt.prose}, got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

// Names of files may come from elsewhere, and commands are there to be pasted.
func TestAHostileNameOfAFileIsQuoted(t *testing.T) {
	m := Missing{Module: "rds_rdma", Ruled: true, Rule: module.Rule{File: "/etc/$(reboot)", Line: 1, Text: "install rds_rdma /bin/false"}}
	if command, _ := m.Remedy(); command != "sed -i '1s/^/# /' '/etc/$(reboot)' && modprobe rds_rdma" {
		t.Error(command)
	}
	m.Rule = module.Rule{File: "/proc/cmdline", Text: "$(reboot)=1"}
	if command, _ := m.Lift(); !strings.HasPrefix(command, "grep -rs '$(reboot)' /") {
		t.Error(command)
	}
}
