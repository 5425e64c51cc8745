package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/lab/kernel"
	"github.com/rdskit/rdskit/internal/lab/kmod"
)

// needQEMU skips the test where QEMU is missing and in quick runs: without KVM
// its machine takes seconds to boot and emulates each instruction.
func needQEMU(t *testing.T) {
	t.Helper()
	long(t)
	needProfile(t, kernel.QEMU)
}

func TestQEMUDoesWhatUserModeLinuxDoes(t *testing.T) {
	needQEMU(t)
	needPrograms(t, "ip", "ping", "python3")
	dir := t.TempDir()
	bytes := everyByte()
	write(t, map[string]string{filepath.Join(dir, "bytes"): bytes})
	r := &run{t: t, dir: dir, stdin: strings.NewReader(bytes), args: []string{"run", "-v", "--profile", "qemu", "--smp", "2", "--hosts", "3", "--", "sh", "-c", `
cat bytes; cat bytes >&2; cat
nproc; uname -r | cut -d. -f1
ip netns exec h2 ping -qc1 -W5 h3 > /dev/null && echo reached h3
cut -d' ' -f1 /proc/modules | grep ^rds | sort
modprobe rds_rdma && echo rdma
echo real > out; echo scratch > /etc/rds-lab.test-scratch; echo scratch > /tmp/rds-lab.test-scratch
exit 3
`}}
	r.do().want(3, bytes+bytes+"2\n6\nreached h3\nrds\nrds_tcp\nrdma\n")
	line, rest, _ := strings.Cut(r.stderr, "\n")
	if !regexp.MustCompile(`^rds-lab: qemu, kernel .*: the command starts after [0-9.]+ s$`).MatchString(line) || rest != bytes {
		t.Errorf("stderr is %q, want a line of rds-lab's and the bytes", r.stderr)
	}
	t.Log(line)
	wantFile(t, filepath.Join(dir, "out"), "real\n")
	wantNoFile(t, "/etc/rds-lab.test-scratch")
	wantNoFile(t, "/tmp/rds-lab.test-scratch")
}

func TestQEMUTellsHowAMachineEnded(t *testing.T) {
	needQEMU(t)
	for _, test := range []struct {
		name, script string
		status       int
		stderr       []string
	}{
		{"panicked", "echo c > /proc/sysrq-trigger", 126, []string{"the kernel panicked", "sysrq triggered crash"}},
		{"has warned", "echo 512 > /proc/sys/kernel/tainted", 126, []string{"taint went from 0x0 to 0x200"}},
		{"went down", "echo o > /proc/sysrq-trigger; sleep 1000", 125, []string{"ended without a result"}},
		{"restarted", "echo b > /proc/sysrq-trigger; sleep 1000", 125, []string{"ended without a result"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := &run{t: t, args: []string{"run", "--profile", "qemu", "--", "sh", "-c", test.script}}
			r.do().want(test.status, "").wantStderr(test.stderr...)
		})
	}
}

// A loop of instructions takes the same virtual time in each deterministic run,
// within a few percent.
func TestDeterministicTimeCountsInstructions(t *testing.T) {
	needQEMU(t)
	needPrograms(t, "python3")
	// In a function: names outside of one are looked up by hashes that are others in each run.
	const loop = `import time
def loop():
    for i in range(300000): pass
a = time.perf_counter()
loop()
print(int((time.perf_counter() - a) * 1e6))`
	var times [2]int
	for i := range times {
		r := &run{t: t, args: []string{"run", "--profile", "qemu", "--deterministic", "--", "python3", "-c", loop}}
		r.do()
		if _, err := fmt.Sscan(r.stdout, &times[i]); err != nil {
			t.Fatalf("status %d, stdout %q: %v; stderr:\n%s", r.status, r.stdout, err, r.stderr)
		}
	}
	if lo, hi := min(times[0], times[1]), max(times[0], times[1]); lo == 0 || float64(hi)/float64(lo) > 1.05 {
		t.Errorf("%d and %d us, want the same within 5%%", lo, hi)
	}
}

func TestARaceIsFoundOnTwoProcessors(t *testing.T) {
	needQEMU(t)
	if _, err := exec.LookPath("gcc"); err != nil {
		t.Skipf("the race detector needs a C compiler: %v", err)
	}
	out, status := goTest(t, []string{"CGO_ENABLED=1", "SAMPLE_RACE=1"}, "-race", "-v", "-run", "Race|Positive", execFlag("--profile", "qemu", "--smp", "2"))
	if status != 1 || !strings.Contains(out, "WARNING: DATA RACE") || !strings.Contains(out, "--- PASS: TestPositive") || !strings.Contains(out, "race detected during execution of test") {
		t.Errorf("status %d:\n%s", status, out)
	}
}

func TestAnOwnKernelForQEMU(t *testing.T) {
	needQEMU(t)
	found, err := kernel.Find(kernel.QEMU, "", kernel.Roots()...)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(found.Path, filepath.Join(dir, "vmlinuz")); err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, dir: dir, args: []string{"run", "--profile", "qemu", "--kernel", "vmlinuz", "--modules-dir", found.Modules, "--", "uname", "-r"}}
	r.do().want(0, found.Release+"\n")
}

// An unpacked RPM package: the image lies in the module tree, which has no index
// before setup has made it, and modules may be compressed.
func TestAnUnpackedRPMBoots(t *testing.T) {
	needQEMU(t)
	found, err := kernel.Find(kernel.QEMU, "", kernel.Roots()...)
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	dir := filepath.Join(root, "lib/modules", found.Release)
	tree, err := kmod.Open(os.DirFS(found.Modules))
	if err != nil {
		t.Fatal(err)
	}
	files, err := tree.Load(kernel.Modules(kernel.QEMU)...)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, file := range append(files, "modules.builtin") {
		texts[filepath.Join(dir, file)] = read(t, filepath.Join(found.Modules, file))
	}
	texts[filepath.Join(dir, "vmlinuz")] = read(t, found.Path)
	write(t, texts)
	args := []string{"run", "--profile", "qemu", "--kernel", root, "--", "uname", "-r"}
	(&run{t: t, args: args}).do().want(2, "").wantStderr("no modules.dep", "rds-lab setup")
	(&run{t: t, args: []string{"setup", "--profile", "qemu", "--kernel", root}}).do().wantStderr("indexing the modules")
	(&run{t: t, args: args}).do().want(0, found.Release+"\n")
}

// The two RDMA hosts talk by the channel adapter, over IPv4 and IPv6, while the hosts
// beside them are there as ever.
func TestRDMAHostsTalkByTheChannelAdapter(t *testing.T) {
	needQEMU(t)
	dir := t.TempDir()
	build := exec.Command("go", "build", "-o", dir, "../rds-ping", "../rds-info")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := &run{t: t, dir: dir, args: []string{"run", "-v", "--profile", "qemu", "--rdma", "--", "sh", "-ec", `
./rds-ping -c 2 -i 0.1 -I 10.8.0.1 10.8.0.2 2>&1 | grep -o 'by infiniband'
./rds-ping -c 2 -i 0.1 -I fd08::1 fd08::2 2>&1 | grep -o 'by infiniband'
./rds-info -I | grep -c '10.8.0.[12] *10.8.0.[12]'
./rds-ping --netns h1 -c 1 10.9.0.2 2>&1 | grep -o 'by tcp'
`}}
	r.do().want(0, "by infiniband\nby infiniband\n2\nby tcp\n")
	t.Log(r.stderr)
}

// A machine whose kernel panics while it boots, as happens under QEMU on a busy host, is booted again. One that
// always does is given up.
func TestAMachineThatEndsWhileItBootsIsBootedAgain(t *testing.T) {
	needQEMU(t)
	for _, test := range []struct {
		deaths, status int
		stdout         string
		stderr         []string
	}{
		{1, 0, "here\n", nil},
		{3, 125, "", []string{"the machine ended before the command started"}},
	} {
		t.Run(fmt.Sprintf("%d times", test.deaths), func(t *testing.T) {
			r := &run{t: t, args: []string{"run", "--profile", "qemu", "--", "echo", "here"}}
			cmd := r.command(t.Context())
			var stdout, stderr bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			go func() {
				defer close(done)
				cmd.Wait()
			}()
			killed := make(map[int]bool)
			for len(killed) < test.deaths {
				select {
				case <-done:
					t.Fatalf("it ended after %d machines: %s", len(killed), &stderr)
				case <-time.After(time.Millisecond):
				}
				if id := machineOf(t, cmd.Process.Pid); id != 0 && !killed[id] {
					killed[id] = true
					syscall.Kill(id, syscall.SIGKILL)
				}
			}
			<-done
			if status := cmd.ProcessState.ExitCode(); status != test.status || stdout.String() != test.stdout {
				t.Errorf("status %d, stdout %q; want %d, %q", status, &stdout, test.status, test.stdout)
			}
			for _, want := range test.stderr {
				if !strings.Contains(stderr.String(), want) {
					t.Errorf("stderr is %q, without %q", &stderr, want)
				}
			}
		})
	}
}

// machineOf is the process id of the machine of a launcher, a child of its keeper; 0 if there is none.
func machineOf(t *testing.T, launcher int) int {
	all := processes(t)
	for _, keeper := range all {
		if keeper.parent != launcher {
			continue
		}
		for _, p := range all {
			if p.parent == keeper.id && strings.HasPrefix(p.name, "qemu") {
				return p.id
			}
		}
	}
	return 0
}
