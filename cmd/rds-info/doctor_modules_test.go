package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/kernel"
	"github.com/rdskit/rdskit/internal/labtest"
)

// buildCommands builds rds-lab and rds-info as users build them.
func buildCommands(t *testing.T) (lab, info string) {
	t.Helper()
	if labtest.Lab() != "" {
		t.Skip("starts labs of its own")
	}
	if _, err := kernel.Find(kernel.UML, "", kernel.Roots()...); err != nil {
		t.Skipf("%v: 'rds-lab setup' gets one", err)
	}
	dir := t.TempDir()
	build := exec.Command("go", "build", "-buildvcs=false", "-o", dir, "../rds-lab", ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "rds-lab"), filepath.Join(dir, "rds-info")
}

// What modules there are is settled when the lab boots, so that each of these has one
// of its own.
func TestDoctorNamesTheModule(t *testing.T) {
	lab, info := buildCommands(t)
	doctor := info + " doctor --json"
	for _, tt := range []struct {
		name    string
		modules string
		script  string
		want    []finding
	}{
		{"no module", "none", doctor + "; status=$?; test -e /sys/module/rds && echo rds was loaded; exit $status", []finding{
			{Check: "socket", Verdict: "fail", Reason: "the module rds is not loaded", Remedy: "modprobe rds_tcp"},
			{Check: "module", Verdict: "fail", Subject: "rds", Reason: "it is not loaded", Remedy: "modprobe rds_tcp"},
		}},
		{"a kernel without the module, told by a bundle", "none", "mkdir /tmp/other && echo kernel/fs/ext4.ko: > /tmp/other/modules.dep && mount --bind /tmp/other /lib/modules/$(uname -r) && " + info + " snapshot /tmp/bundle && " + doctor + " --from /tmp/bundle", []finding{
			{Check: "socket", Verdict: "fail", Reason: "the module rds is not loaded, and this kernel comes without it", Remedy: "linux-modules-extra-$(uname -r)"},
		}},
		{"a module blocked on the kernel's command line", "none", "echo ro module_blacklist=sctp,rds_tcp modprobe.blacklist=rds > /tmp/cmdline && mount --bind /tmp/cmdline /proc/cmdline && " + doctor, []finding{
			{Check: "module", Verdict: "fail", Subject: "rds", Reason: `"modprobe.blacklist=rds" on the kernel's command line stops the kernel from loading it by itself`, Remedy: "modprobe rds_tcp"},
			{Check: "module", Verdict: "fail", Subject: "rds_tcp", Reason: `"module_blacklist=sctp,rds_tcp" on the kernel's command line stops it from being loaded`, Remedy: "grep -rs module_blacklist /etc/default/grub", Advice: "take rds_tcp out of it"},
		}},
		{"a kernel that loads no module any more", "none", "echo kernel.modules_disabled = 1 > /etc/sysctl.d/zz-test.conf; echo 1 > /proc/sys/kernel/modules_disabled; " + doctor, []finding{
			{Check: "socket", Verdict: "fail", Reason: `"kernel.modules_disabled=1" in /etc/sysctl.d/zz-test.conf, line 1 stops it from being loaded`, Remedy: "sed -i '1s/^/# /' /etc/sysctl.d/zz-test.conf", Advice: "boot again"},
		}},
		{"a module blocked in modprobe.d", "none", "printf '# hardening\\ninstall rds /bin/false\\nblacklist rds_tcp\\n' > /etc/modprobe.d/zz-test.conf; " + doctor, []finding{
			{Check: "socket", Verdict: "fail", Reason: `"install rds /bin/false" in /etc/modprobe.d/zz-test.conf, line 2 stops it from being loaded`, Remedy: "sed -i '2s/^/# /' /etc/modprobe.d/zz-test.conf && modprobe rds_tcp"},
			{Check: "module", Verdict: "fail", Subject: "rds_tcp", Reason: `"blacklist rds_tcp" in /etc/modprobe.d/zz-test.conf, line 3 stops the kernel from loading it by itself`},
		}},
		{"a loaded module that will be blocked", "rds,rds_tcp", "echo install rds_tcp /bin/true > /etc/modprobe.d/zz-test.conf; " + doctor, []finding{
			{Check: "module", Verdict: "warn", Subject: "rds_tcp", Reason: "will not be after a reboot", Remedy: "sed -i '1s/^/# /' /etc/modprobe.d/zz-test.conf"},
		}},
		{"rds without rds_tcp", "rds", doctor + " --probe 10.9.0.2", []finding{
			{Check: "module", Verdict: "fail", Subject: "rds_tcp", Reason: "without a transport no other host can be reached", Remedy: "modprobe rds_tcp"},
			{Check: "address", Verdict: "fail", Subject: "10.9.0.1", Reason: "no transport serves it: rds_tcp is not loaded", Remedy: "modprobe rds_tcp"},
			{Check: "ping", Verdict: "fail", Subject: "10.9.0.2", Reason: "no transport serves 10.9.0.1"},
		}},
		{"a program on the port of rds_tcp", "rds", "python3 -ISc 'import socket, time; s = socket.create_server((\"\", 16385)); time.sleep(600)' & until grep -q ':4001 .* 0A ' /proc/net/tcp; do sleep 0.1; done; " + doctor + "; status=$?; kill $!; exit $status", []finding{
			{Check: "listener", Verdict: "fail", Reason: "a program has it", Remedy: "ss -ltnp 'sport = :16385'"},
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if strings.Contains(tt.script, "python3") {
				if _, err := exec.LookPath("python3"); err != nil {
					t.Skip(err)
				}
			}
			cmd := exec.Command(lab, "run", "--modules", tt.modules, "--timeout", "200", "--", "sh", "-c", tt.script)
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			err := cmd.Run()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			r := labtest.Result{Stdout: stdout.String(), Stderr: stderr.String(), Status: cmd.ProcessState.ExitCode()}
			if r.Status > 2 {
				t.Fatalf("%+v", r)
			}
			for _, want := range tt.want {
				wantFinding(t, r, want)
			}
		})
	}
}
