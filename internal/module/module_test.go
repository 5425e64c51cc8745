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
