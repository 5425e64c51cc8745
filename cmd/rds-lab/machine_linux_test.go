package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// machines runs a shell script in a lab of two machines, with its own rds-lab in PATH.
func machines(t *testing.T, script string, options ...string) *run {
	t.Helper()
	needQEMU(t)
	args := append([]string{"run", "--profile", "qemu", "--machines", "2", "--hosts", "0"}, options...)
	return &run{t: t, args: append(args, "--", "sh", "-c", script),
		env: []string{"PATH=" + filepath.Dir(program) + ":" + os.Getenv("PATH")}}
}

func TestTwoMachines(t *testing.T) {
	dir := t.TempDir()
	r := machines(t, `
hostname; rds-lab on m2 hostname
echo in | rds-lab on m2 -- sh -c 'cat; echo err >&2; exit 3'; echo $?
rds-lab on m2 -- sh -c 'echo real > out'
ping -qc1 -W5 rdma2 > /dev/null && echo reached
rds-lab cut; ping -qc1 -W1 rdma2 > /dev/null || echo cut
rds-lab mend; ping -qc1 -W5 rdma2 > /dev/null && echo mended
rds-lab kill m2; rds-lab on m2 true; echo $?
exit 4`)
	r.dir = dir
	r.do().want(4, "m1\nm2\nin\n3\nreached\ncut\nmended\n125\n").wantStderr("err\n", "machine m2 does not run")
	wantFile(t, filepath.Join(dir, "out"), "real\n")
}

func TestTheCommandRunsOnTheSecondMachine(t *testing.T) {
	machines(t, "hostname; echo $RDS_LAB_MACHINE; rds-lab on m1 -- sh -c 'hostname; cat'; rds-lab kill m2; echo $?", "--on", "m2").
		do().want(0, "m2\nm2\nm1\n125\n")
}

func TestWhatBecomesOfTheOtherMachineCounts(t *testing.T) {
	for _, test := range []struct {
		name, script string
		status       int
		stdout       string
		stderr       []string
	}{
		{"has warned", "rds-lab on m2 -- sh -c 'echo 512 > /proc/sys/kernel/tainted'", 126, "",
			[]string{"machine m2: the kernel's taint went from 0x0 to 0x200"}},
		{"panicked", "rds-lab on m2 -- sh -c 'echo c > /proc/sysrq-trigger'; echo $?", 126, "125\n",
			[]string{"machine m2: the kernel panicked", "sysrq triggered crash"}},
		{"panicked under a command that failed", "rds-lab on m2 -- sh -c 'echo c > /proc/sysrq-trigger' 2>/dev/null; exit 5", 5, "",
			[]string{"machine m2: the kernel panicked"}},
		{"was killed, which is no failure", "rds-lab kill m2", 0, "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			machines(t, test.script).do().want(test.status, test.stdout).wantStderr(test.stderr...)
		})
	}
}

func TestTwoMachinesAreGoneWithTheirLauncher(t *testing.T) {
	tmp := t.TempDir()
	r := machines(t, "echo begun; sleep 1000")
	r.env = append(r.env, "TMPDIR="+tmp)
	cmd := r.command(t.Context())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	if _, err := out.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	if n := processesWith(t, tmp); n < 2 {
		t.Errorf("%d machines run, want 2", n)
	}
	cmd.Process.Kill()
	cmd.Wait()
	var left []os.DirEntry
	for began := time.Now(); time.Since(began) < 10*time.Second; time.Sleep(50 * time.Millisecond) {
		if left, err = os.ReadDir(tmp); err != nil {
			t.Fatal(err)
		}
		if len(left) == 0 && processesWith(t, tmp) == 0 {
			return
		}
	}
	t.Errorf("%d processes and %v are left", processesWith(t, tmp), left)
}

// processesWith counts the machines whose command line has a text.
func processesWith(t *testing.T, text string) int {
	t.Helper()
	out, err := exec.Command("sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n'").Output()
	if err != nil && len(out) == 0 {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, "RDS_LAB_INIT="+text) {
			n++
		}
	}
	return n
}
