package diagnose

import (
	"slices"
	"testing"

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
	for _, tt := range []struct {
		name            string
		modules         modules
		because, remedy string
		none            bool
	}{
		{name: "none is loaded: rds_tcp is", modules: modules{},
			remedy: "modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE"},
		{name: "rds_tcp is loaded: rds_rdma is", modules: modules{loaded: []string{"rds_tcp"}},
			remedy: "modprobe rds_rdma"},
		{name: "both are loaded: none is", modules: modules{loaded: []string{"rds_tcp", "rds_rdma"}}, none: true},
		{name: "a blacklist does not stop modprobe", modules: modules{rules: map[string]module.Rule{"rds_tcp": blacklist}},
			because: `, and "blacklist rds_tcp" in /etc/modprobe.d/a.conf, line 3 stops the kernel from loading it by itself`,
			remedy:  "modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE"},
		{name: "an install line does", modules: modules{rules: map[string]module.Rule{"rds_tcp": install}},
			because: `, and "install rds_tcp /bin/false" in /etc/modprobe.d/b.conf, line 1 stops it from being loaded`,
			remedy:  "remove line 1 of /etc/modprobe.d/b.conf, then modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE"},
		{name: "what the kernel comes without cannot be loaded", modules: modules{absent: []string{"rds_tcp"}, rules: map[string]module.Rule{"rds_tcp": install}},
			because: ", and this kernel comes without it",
			remedy:  "install the package with more modules of this kernel, linux-modules-extra-$(uname -r) on Ubuntu or kernel-modules-extra on Fedora and RHEL, or boot a kernel that has it"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m, ok := Transport(tt.modules)
			if ok == tt.none {
				t.Fatalf("missing: %v", ok)
			}
			if ok && (m.Because() != tt.because || m.Remedy() != tt.remedy) {
				t.Errorf("because %q, remedy %q\nwant    %q, remedy %q", m.Because(), m.Remedy(), tt.because, tt.remedy)
			}
		})
	}
}
