package main

import (
	"strings"
	"testing"
)

func TestBadUsageIsRefusedWithAReason(t *testing.T) {
	for _, test := range []struct {
		args   []string
		stderr []string
	}{
		{nil, []string{"no command given", "run, exec, shell, setup"}},
		{[]string{"walk"}, []string{`"walk"`, "run, exec, shell, setup"}},
		{[]string{"run"}, []string{"no command given"}},
		{[]string{"exec", "--"}, []string{"no command given"}},
		{[]string{"setup", "uml"}, []string{`setup takes no argument such as "uml"`}},
		{[]string{"setup", "--profile", "uml,vax"}, []string{`"vax"`, "uml, qemu"}},
		{[]string{"run", "--nosuch", "--", "true"}, []string{"--nosuch is not an option"}},
		{[]string{"run", "--hosts", "0", "--", "true"}, []string{"h1", "0 hosts", `"init"`}},
		{[]string{"run", "--hosts", "-1", "--", "true"}, []string{`--hosts "-1"`, "0 to 250"}},
		{[]string{"run", "--hosts", "300", "--", "true"}, []string{`--hosts "300"`, "0 to 250"}},
		{[]string{"run", "--hosts", "x", "--", "true"}, []string{`--hosts "x"`, "not a whole number"}},
		{[]string{"run", "--hosts", "", "--", "true"}, []string{`--hosts ""`, "not a whole number"}},
		{[]string{"run", "--hosts"}, []string{"--hosts needs a value"}},
		{[]string{"run", "--on", "h3", "--", "true"}, []string{"run on h3", "2 hosts"}},
		{[]string{"run", "--on", "host", "--", "true"}, []string{`"host"`, "h1, h2"}},
		{[]string{"run", "--timeout", "0", "--", "true"}, []string{`--timeout "0"`, "at least 1 us"}},
		{[]string{"run", "--timeout", "soon", "--", "true"}, []string{`--timeout "soon"`, "such as 0.5"}},
		{[]string{"run", "--netem", "bogus", "--", "true"}, []string{`--netem "bogus"`, "none of delay, loss"}},
		{[]string{"run", "--netem", "loss 200%", "--", "true"}, []string{`loss "200%"`, "0% to 100%"}},
		{[]string{"run", "--netem", "delay", "--", "true"}, []string{"delay needs a value"}},
		{[]string{"run", "--netem", "reorder 5%", "--", "true"}, []string{"reorder needs a delay"}},
		{[]string{"run", "--profile", "vax", "--", "true"}, []string{`--profile "vax"`, "uml, qemu"}},
		{[]string{"run", "--smp", "2", "--", "true"}, []string{"2 processors", "qemu"}},
		{[]string{"run", "--smp", "0", "--", "true"}, []string{`--smp "0"`, "1 to 64"}},
		{[]string{"run", "--deterministic", "--", "true"}, []string{"qemu"}},
		{[]string{"run", "--rdma", "--", "true"}, []string{"no InfiniBand", "qemu"}},
		{[]string{"run", "--machines", "2", "--", "true"}, []string{"no InfiniBand", "qemu"}},
		{[]string{"run", "--machines", "3", "--", "true"}, []string{`--machines "3"`, "1 to 2"}},
		{[]string{"run", "--on", "m2", "--", "true"}, []string{"run on m2", "one machine"}},
		{[]string{"run", "--on", "m3", "--profile", "qemu", "--machines", "2", "--", "true"}, []string{`"m3"`}},
		{[]string{"run", "--profile", "qemu", "--machines", "2", "--deterministic", "--", "true"}, []string{"deterministic lab has one machine"}},
		{[]string{"on", "m2", "--", "true"}, []string{"no machine of a lab", "run --machines 2"}},
		{[]string{"on", "m9", "true"}, []string{`"m9"`, "m1 and m2"}},
		{[]string{"on", "m2"}, []string{"no command given"}},
		{[]string{"on"}, []string{"name of a machine"}},
		{[]string{"kill"}, []string{"name of one machine"}},
		{[]string{"kill", "h2"}, []string{`"h2"`, "m1 and m2"}},
		{[]string{"boot", "m2"}, []string{"no machine of a lab"}},
		{[]string{"cut", "m2"}, []string{`no argument such as "m2"`}},
		{[]string{"mend"}, []string{"no machine of a lab"}},
		{[]string{"run", "--profile", "qemu", "--deterministic", "--smp", "2", "--", "true"}, []string{"one processor, not 2"}},
		{[]string{"run", "--memory", "1", "--", "true"}, []string{`--memory "1"`, "128 to"}},
		{[]string{"run", "--sysctl", "novalue", "--", "true"}, []string{`--sysctl "novalue"`, "KEY=VALUE"}},
		{[]string{"run", "--modules", "rds,,tcp", "--", "true"}, []string{`--modules "rds,,tcp"`, "rds,rds_tcp"}},
		{[]string{"run", "--modules", "../rds", "--", "true"}, []string{`--modules "../rds"`}},
		{[]string{"run", "--modules", "nosuch", "--", "true"}, []string{"module nosuch", "/modules"}},
		{[]string{"run", "--kernel", "/no/such/kernel", "--", "true"}, []string{`--kernel "/no/such/kernel"`, "no such file"}},
		{[]string{"run", "--kernel", "/bin/true", "--", "true"}, []string{`--kernel "/bin/true"`, "not a User-Mode Linux"}},
		{[]string{"run", "--kernel", "/bin/true", "--profile", "qemu", "--modules-dir", "/etc", "--", "true"}, []string{"/etc", "modules.dep"}},
		{[]string{"run", "--kernel", "/etc/passwd", "--profile", "qemu", "--", "true"}, []string{`--kernel "/etc/passwd"`, "neither a Linux boot image"}},
		{[]string{"run", "--modules-dir", "/tmp", "--", "true"}, []string{`--modules-dir "/tmp"`, "--kernel"}},
	} {
		t.Run(strings.Join(test.args, " "), func(t *testing.T) {
			r := rdsLab(t, test.args...).want(2, "").wantStderr(test.stderr...)
			if n := strings.Count(r.stderr, "\n"); n != 1 || !strings.HasPrefix(r.stderr, "rds-lab: ") {
				t.Errorf("stderr is %q, want one line of rds-lab's", r.stderr)
			}
		})
	}
}
