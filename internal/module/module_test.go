package module

import (
	"os"
	"path/filepath"
	"testing"
)

func system(t *testing.T, files map[string]string) System {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return System{Root: root}
}

func TestBlocked(t *testing.T) {
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string // "" for none
	}{
		{"nothing blocks without a configuration", nil, ""},
		{"a blacklist", map[string]string{"etc/modprobe.d/a.conf": "# x\n\nblacklist rds\n"},
			`"blacklist rds" in /etc/modprobe.d/a.conf, line 3`},
		{"an install command that does nothing", map[string]string{"usr/lib/modprobe.d/b.conf": "install  rds\t/bin/true\n"},
			`"install rds /bin/true" in /usr/lib/modprobe.d/b.conf, line 1`},
		{"another that fails", map[string]string{"run/modprobe.d/b.conf": "install rds /usr/bin/false"},
			`"install rds /usr/bin/false" in /run/modprobe.d/b.conf, line 1`},
		{"an alias that is off, however it is spelled", map[string]string{"lib/modprobe.d/c.conf": "alias net_pf_21 off\n"},
			`"alias net_pf_21 off" in /lib/modprobe.d/c.conf, line 1`},
		{"install goes before blacklist", map[string]string{"etc/modprobe.d/a.conf": "blacklist rds\n", "lib/modprobe.d/z.conf": "install rds /bin/false\n"},
			`"install rds /bin/false" in /lib/modprobe.d/z.conf, line 1`},
		{"a file hides its namesakes in later directories", map[string]string{"etc/modprobe.d/a.conf": "", "lib/modprobe.d/a.conf": "blacklist rds\n"}, ""},
		{"a pattern", map[string]string{"etc/modprobe.d/a.conf": "install rds* /bin/false\n"},
			`"install rds* /bin/false" in /etc/modprobe.d/a.conf, line 1`},
		{"a command that says so", map[string]string{"etc/modprobe.d/a.conf": "install rds logger -p auth.warn rds was asked for; exit 1\n"},
			`"install rds logger -p auth.warn rds was asked for; exit 1" in /etc/modprobe.d/a.conf, line 1`},
		{"a blacklist with a remark", map[string]string{"etc/modprobe.d/a.conf": "blacklist rds # CIS 3.5.3\n"},
			`"blacklist rds # CIS 3.5.3" in /etc/modprobe.d/a.conf, line 1`},
		{"lines that go on", map[string]string{"etc/modprobe.d/a.conf": "# none \\\n  of these\ninstall rds \\\n  /bin/false\n"},
			`"install rds /bin/false" in /etc/modprobe.d/a.conf, line 3`},
		{"the kernel's command line", map[string]string{"proc/cmdline": "ro quiet module_blacklist=a,rds,b\n"},
			`"module_blacklist=a,rds,b" on the kernel's command line`},
		{"the same, spelled and quoted otherwise", map[string]string{"proc/cmdline": "x=\"y module_blacklist=z\" \"module-blacklist=a,rds\"\n"},
			`"module_blacklist=a,rds" on the kernel's command line`},
		{"the last list of the kernel's holds", map[string]string{"proc/cmdline": "module_blacklist=rds module_blacklist=sctp"}, ""},
		{"modprobe's part of the command line", map[string]string{"proc/cmdline": "modprobe.blacklist=sctp modprobe.blacklist=dccp,rds ro"},
			`"modprobe.blacklist=dccp,rds" on the kernel's command line`},
		{"other names, other parameters, and what is not for the kernel", map[string]string{
			"proc/cmdline": "module_blacklist=rds_tcp,rds2 xmodule_blacklist=rds modprobe.blacklist=rd modprobe.other=rds -- module_blacklist=rds"}, ""},
		{"module_blacklist goes before install", map[string]string{"proc/cmdline": "module_blacklist=rds", "etc/modprobe.d/a.conf": "install rds /bin/false\n"},
			`"module_blacklist=rds" on the kernel's command line`},
		{"install goes before modprobe.blacklist", map[string]string{"proc/cmdline": "modprobe.blacklist=rds", "etc/modprobe.d/a.conf": "install rds /bin/false\n"},
			`"install rds /bin/false" in /etc/modprobe.d/a.conf, line 1`},
		{"no module is loaded any more", map[string]string{"proc/sys/kernel/modules_disabled": "1\n", "proc/cmdline": "module_blacklist=rds"},
			`"kernel.modules_disabled=1"`},
		{"by a line", map[string]string{"proc/sys/kernel/modules_disabled": "1\n", "usr/lib/sysctl.d/50-x.conf": "kernel.modules_disabled=0\n", "etc/sysctl.d/99-x.conf": "# lock\n\n-kernel/modules_disabled = 1\n"},
			`"kernel.modules_disabled=1" in /etc/sysctl.d/99-x.conf, line 3`},
		{"by another", map[string]string{"proc/sys/kernel/modules_disabled": "1\n", "etc/sysctl.conf": "kernel.modules_disabled=1"},
			`"kernel.modules_disabled=1" in /etc/sysctl.conf, line 1`},
		{"modules are loaded still", map[string]string{"proc/sys/kernel/modules_disabled": "0\n", "etc/sysctl.conf": "kernel.modules_disabled=1"}, ""},
		{"a module that is loaded stays", map[string]string{"proc/sys/kernel/modules_disabled": "1\n", "sys/module/rds/refcnt": "0\n"}, ""},
		{"other modules, other commands, comments and other files do not block", map[string]string{
			"etc/modprobe.d/a.conf":   "blacklist rds_tcp\ninstall rds /sbin/modprobe --ignore-install rds\n#blacklist rds\nblacklist\nalias net-pf-21 rds\n",
			"etc/modprobe.d/a.backup": "blacklist rds\n",
		}, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rule, ok := system(t, tt.files).Blocked("rds", "net-pf-21")
			got := ""
			if ok {
				got = rule.String()
			}
			if got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
		})
	}
}

func TestARuleTellsHowFarItGoes(t *testing.T) {
	for _, tt := range []struct {
		rule                     Rule
		blacklisted, untilReboot bool
	}{
		{Rule{"/etc/modprobe.d/a.conf", 1, "blacklist rds"}, true, false},
		{Rule{"/etc/modprobe.d/a.conf", 1, "alias net-pf-21 off"}, true, false},
		{Rule{"/etc/modprobe.d/a.conf", 1, "install rds /bin/false"}, false, false},
		{Rule{"/proc/cmdline", 0, "modprobe.blacklist=rds"}, true, false},
		{Rule{"/proc/cmdline", 0, "module_blacklist=rds"}, false, true},
		{Rule{"/etc/sysctl.conf", 4, "kernel.modules_disabled=1"}, false, true},
	} {
		if tt.rule.Blacklisted() != tt.blacklisted || tt.rule.UntilReboot() != tt.untilReboot {
			t.Errorf("%v: blacklisted %v, until reboot %v", tt.rule, tt.rule.Blacklisted(), tt.rule.UntilReboot())
		}
	}
}

func TestLoaded(t *testing.T) {
	s := system(t, map[string]string{"sys/module/rds/refcnt": "0\n"})
	if !s.Loaded("rds") || s.Loaded("rds_tcp") {
		t.Error("want rds loaded and rds_tcp not")
	}
}

func TestAbsent(t *testing.T) {
	const osrelease, dir = "proc/sys/kernel/osrelease", "lib/modules/6.1.0/"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  bool
	}{
		{"a kernel with the module", map[string]string{osrelease: "6.1.0\n", dir + "modules.dep": "kernel/net/rds/rds.ko: kernel/lib/x.ko\nkernel/net/rds/rds-tcp.ko.xz: kernel/net/rds/rds.ko.xz\n"}, false},
		{"a kernel with it built in", map[string]string{osrelease: "6.1.0\n", dir + "modules.dep": "", dir + "modules.builtin": "kernel/net/rds/rds_tcp.ko\n"}, false},
		{"a kernel without", map[string]string{osrelease: "6.1.0\n", dir + "modules.dep": "kernel/net/rds/rds.ko:\nkernel/x.ko: kernel/net/rds/rds_tcp.ko\n"}, true},
		{"another kernel's directory", map[string]string{osrelease: "6.2.0\n", dir + "modules.dep": ""}, false},
		{"a container without any", map[string]string{osrelease: "6.1.0\n"}, false},
		{"no /proc", nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := system(t, tt.files).Absent("rds_tcp"); got != tt.want {
				t.Errorf("%v, want %v", got, tt.want)
			}
		})
	}
}
