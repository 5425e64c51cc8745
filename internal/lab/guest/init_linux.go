// Package guest is process 1 of a lab: it makes the root, loads the modules,
// builds the hosts, runs the command, and reports how it ended.
package guest

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/netem"
	"golang.org/x/sys/unix"
)

// IsInit tells whether this process is the init of a lab's guest.
func IsInit() bool { return os.Getpid() == 1 && os.Getenv(job.EnvInit) != "" }

// Main is the life of process 1. It does not return.
func Main() {
	console("%v", run(os.Getenv(job.EnvInit)))
	powerOff()
}

func powerOff() {
	unix.Sync()
	if err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF); err != nil {
		console("power off: %v", err)
	}
	select {} // an init that returns is a panic
}

// run is the job. It returns only if that fails, with the reason.
func run(dir string) error {
	root, err := newRoot()
	if err != nil {
		return err
	}
	j, err := job.Read(root.host(dir))
	if err != nil {
		return err
	}
	if err := root.build(j, dir); err != nil {
		return err
	}
	lines, err := openLines()
	if err != nil {
		return err
	}
	result, done := new(job.Result), new(job.Done)
	log, children := kernelLog(), newReaper()
	if err := prepare(j, lines, children); err != nil {
		result.Error = err.Error()
		result.KernelLog = newLines(log, kernelLog())
	} else {
		done = execute(j, lines, children, result)
	}
	// The guest's page cache stands between the job's files and the host.
	unix.Sync()
	if err := result.Write(dir); err != nil {
		return fmt.Errorf("result: %w", err)
	}
	return lines.finish(done)
}

// prepare makes the kernel and the network what the job wants. One of several machines
// then waits for the others.
func prepare(j *job.Job, l *lines, children *reaper) error {
	if err := unix.Sethostname([]byte(hostnameOf(j))); err != nil {
		return fmt.Errorf("hostname: %w", err)
	}
	if err := insertModules(j.ModuleTree, j.Files); err != nil {
		return err
	}
	if err := hosts.Build(j.Hosts); err != nil {
		return err
	}
	if err := buildHCAs(j); err != nil {
		return err
	}
	for _, s := range j.Sysctls {
		if err := setSysctl(s, j.Hosts); err != nil {
			return err
		}
	}
	if err := disturb(j.Netem, j.Hosts); err != nil {
		return err
	}
	if j.Machine == 0 {
		return nil
	}
	if err := serveCalls(j.Machine, l, children); err != nil {
		return err
	}
	if err := l.send(job.Message{Ready: true}); err != nil {
		return err
	}
	<-l.goAhead
	return nil
}

// hostnameOf is the name of the machine.
func hostnameOf(j *job.Job) string {
	if j.Machine == 0 {
		return "rds-lab"
	}
	return job.MachineName(j.Machine)
}

// buildHCAs makes the RDMA hosts: both, or of several machines the one that this is.
func buildHCAs(j *job.Job) error {
	switch {
	case j.Machine != 0:
		return hosts.BuildMachine(j.Machine)
	case j.RDMA:
		return hosts.BuildHCAs()
	}
	return nil
}

// disturb disturbs what each host sends.
func disturb(spec string, n int) error {
	s, err := netem.Parse(spec)
	if err != nil || s == (netem.Spec{}) {
		return err
	}
	for _, h := range hosts.All(n) {
		if err := h.SetNetem(s); err != nil {
			return err
		}
	}
	return nil
}

// taint reads the kernel's taint mask.
func taint() (uint64, error) {
	b, err := os.ReadFile("/proc/sys/kernel/tainted")
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
}

// kernelLog is what the kernel's log holds.
func kernelLog() string {
	const all = 3 // SYSLOG_ACTION_READ_ALL
	buf := make([]byte, 256<<10)
	n, err := unix.Klogctl(all, buf)
	if err != nil {
		return err.Error()
	}
	return string(buf[:n])
}

// newLines lists what the kernel's log has gained, without the priorities. If the
// log has turned over since it is all that it holds.
func newLines(before, now string) []string {
	var added []string
	for line := range strings.Lines(strings.TrimPrefix(now, before)) {
		if strings.HasPrefix(line, "<") {
			_, line, _ = strings.Cut(line, ">")
		}
		added = append(added, strings.TrimRight(line, "\n"))
	}
	return added[max(0, len(added)-100):]
}

// console writes a line on the machine's console, which the launcher shows when
// no result comes.
func console(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "rds-lab init: "+format+"\n", args...)
}
