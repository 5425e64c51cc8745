package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// needPrograms skips the test on a host without the programs that it runs in the
// lab.
func needPrograms(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%v: install it to run this test", err)
		}
	}
}

func TestTwoHostsAreJoinedByACable(t *testing.T) {
	needPrograms(t, "ip", "ping")
	script(t, `
ip netns list | cut -d' ' -f1 | sort
ip -o addr show dev eth0 | awk '/10[.]9|fd00/ { print $4, /nodad/ ? "nodad" : "" }'
ip netns exec h2 ip -o addr show dev eth0 | awk '/10[.]9|fd00/ { print $4 }'
ip netns exec h2 ls /sys/class/net | tr '\n' ' '; echo
for to in 10.9.0.2 fd00::2 h2 127.0.0.2; do ping -qc1 -W5 $to > /dev/null && echo reached $to; done
getent ahosts h2 | awk '/STREAM/ { print $1 }' | sort
ip netns exec h2 ping -qc1 -W5 h1 > /dev/null && echo reached h1
`).want(0, `h1
h2
10.9.0.1/24 
fd00::1/64 nodad
10.9.0.2/24
fd00::2/64
eth0 lo 
reached 10.9.0.2
reached fd00::2
reached h2
reached 127.0.0.2
10.9.0.2
fd00::2
reached h1
`)
}

func TestManyHostsShareABridge(t *testing.T) {
	needPrograms(t, "ip", "ping")
	script(t, `
hostname
readlink /proc/self/ns/net > /tmp/here; ip netns exec h4 readlink /proc/self/ns/net | cmp -s - /tmp/here && echo here
for n in 1 2 3 4 5; do
	for to in 10.9.0.$n fd00::$n; do ping -qc1 -W5 $to > /dev/null || echo $to is out of reach; done
	ip netns exec h$n ping -qc1 -W5 h5 > /dev/null || echo h$n does not reach h5
done
`, "--hosts", "5", "--on", "h4").want(0, "rds-lab\nhere\n")
}

func TestTheInitialNamespaceIsBesideTheHosts(t *testing.T) {
	long(t)
	needPrograms(t, "ip", "ping")
	script(t, `
ls /sys/class/net | tr '\n' ' '; echo
ip netns exec h1 ping -qc1 -W5 h2 > /dev/null && echo reached h2
ping -qc1 -W5 127.0.0.2 > /dev/null && echo reached 127.0.0.2
`, "--on", "init", "--hosts", "3").want(0, "br0 h1 h2 h3 lo \nreached h2\nreached 127.0.0.2\n")
}

func TestALabMayHaveOneHostOrNone(t *testing.T) {
	long(t)
	needPrograms(t, "ip", "ping")
	script(t, `ping -qc1 -W5 h1 > /dev/null && ping -qc1 -W5 fd00::1 > /dev/null && ip netns list`, "--hosts", "1").want(0, "h1\n")
	script(t, `ip netns list`, "--hosts", "0", "--on", "init").want(0, "")
}

func TestNetemDisturbsWhatEachHostSends(t *testing.T) {
	needPrograms(t, "ip", "tc", "ping")
	const spec = "delay 60ms loss 0.5% duplicate 1% reorder 5% corrupt 0.1% gap 1"
	script(t, `for n in 1 2; do ip netns exec h$n tc qdisc show dev eth0; done | grep -o 'delay.*'`, "--netem", spec).
		want(0, spec+"\n"+spec+"\n")
	if testing.Short() {
		return
	}
	script(t, `ping -qc1 -W5 h2 > /dev/null; echo $?; ping -qc1 -W1 h1 > /dev/null; echo $?`, "--netem", "loss 100%").
		want(0, "1\n0\n")
}

func TestModulesAndParametersAreWhatTheOptionsSay(t *testing.T) {
	needPrograms(t, "ip")
	script(t, `
cut -d' ' -f1 /proc/modules | grep -E 'rds|dummy' | sort
cat /proc/sys/net/core/wmem_max /proc/sys/net/ipv4/ip_default_ttl
ip netns exec h2 cat /proc/sys/net/ipv4/ip_default_ttl /proc/sys/net/ipv4/conf/eth0/rp_filter
cat /proc/sys/kernel/hostname
`, "--modules", "dummy,rds", "--sysctl", "net.core.wmem_max=7654321", "--sysctl", "net/ipv4/ip_default_ttl=33",
		"--sysctl", "net.ipv4.conf.all.rp_filter=1", "--sysctl", "kernel.hostname=a name", "--on", "init").
		want(0, "dummy\nrds\n7654321\n33\n33\n0\na name\n")
}

// Debian takes the alias for autoload out of rds, so that dummy stands for it.
func TestModprobeAndAutoloadWorkAsOutside(t *testing.T) {
	needPrograms(t, "modprobe", "ip")
	script(t, `
modinfo -n rds_tcp | sed "s/$(uname -r)/RELEASE/"
loaded() { cut -d' ' -f1 /proc/modules | grep -E 'rds|dummy' | sort | tr '\n' ' '; echo; }
loaded
ip link add d0 type dummy && loaded
modprobe rds_tcp && loaded
ip link del d0 && modprobe -r dummy rds_tcp && loaded
echo 'install dummy /bin/false
blacklist rds' > /etc/modprobe.d/rds-lab.test.conf
ip link add d0 type dummy 2> /dev/null || echo no dummy
modprobe -b rds; modprobe dummy 2> /dev/null || echo no dummy
loaded
`, "--modules", "none").want(0, `/lib/modules/RELEASE/kernel/net/rds/rds_tcp.ko

dummy 
dummy rds rds_tcp 

no dummy
no dummy

`)
	wantNoFile(t, "/etc/modprobe.d/rds-lab.test.conf")
}

func TestVerboseTellsTheKernelAndTheTimeOfTheBoot(t *testing.T) {
	r := script(t, "uname -r", "-v")
	m := regexp.MustCompile(`^rds-lab: uml, kernel (\S+) \((/.*)\): the command starts after ([0-9.]+) s\n$`).FindStringSubmatch(r.stderr)
	if r.status != 0 || m == nil || m[1] != strings.TrimSpace(r.stdout) {
		t.Fatalf("status %d, stdout %q, stderr %q", r.status, r.stdout, r.stderr)
	}
	// No judgement: the machine may be busy with other tests.
	t.Logf("the boot took %s s", m[3])
}

func TestAnOwnKernelWithItsModules(t *testing.T) {
	needProfile(t, kernel.UML)
	found, err := kernel.Find(kernel.UML, "", kernel.Roots()...)
	if err != nil {
		t.Fatal(err)
	}
	// At paths of its own, by symbolic links and relative ones.
	dir := t.TempDir()
	for name, to := range map[string]string{"linux": found.Path, "tree": found.Modules} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	r := &run{t: t, dir: dir, args: []string{"run", "-v", "--kernel", "linux", "--modules-dir=tree", "--", "sh", "-c", "grep -c ^rds /proc/modules; uname -r"}}
	r.do().want(0, "2\n"+found.Release+"\n")
}
