package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheExitStatusSaysHowItEnded(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name    string
		long    bool
		options []string
		command []string
		status  int
		stderr  []string // texts; none: it is empty
	}{
		{"that of the command", false, nil, []string{"sh", "-c", "exit 3"}, 3, nil},
		{"of the command, though it is one of the lab's own", true, nil, []string{"sh", "-c", "exit 125"}, 125, nil},
		{"of a command that a signal ended", false, nil, []string{"sh", "-c", "kill -SEGV $$"}, 128 + 11, nil},
		{"of a command that ran too long", false, []string{"--timeout", "200ms"}, []string{"sleep", "1000"}, 124,
			[]string{"longer than 200ms"}},
		{"of a command that ran too long and does not end", true, []string{"--timeout", "200ms"}, []string{"sh", "-c", "trap '' TERM; sleep 1000 & wait; sleep 1000"}, 124,
			[]string{"longer than 200ms"}},
		{"that ran too long and ended well", false, []string{"--timeout", "500ms"}, []string{"sh", "-c", "trap 'exit 0' TERM; sleep 1000 & wait"}, 124,
			[]string{"longer than 500ms"}},
		{"a command that is not there", false, nil, []string{"no-such-command"}, 127,
			[]string{`cannot run "no-such-command": executable file not found in $PATH`}},
		{"a path that is not there", true, nil, []string{"/no/such/command"}, 127,
			[]string{`cannot run "/no/such/command": no such file or directory`}},
		{"an empty command", true, nil, []string{""}, 127, []string{`cannot run ""`}},
		{"a file that is no program", false, nil, []string{file}, 127, []string{"permission denied"}},
		{"a directory", true, nil, []string{"/etc"}, 127, []string{`cannot run "/etc": is a directory`}},
		{"a kernel that has warned", false, nil, []string{"sh", "-c", "echo 512 > /proc/sys/kernel/tainted"}, 126,
			[]string{"taint went from 0x0 to 0x200"}},
		{"a command that failed in a kernel that has warned", false, nil, []string{"sh", "-c", "echo 512 > /proc/sys/kernel/tainted; exit 4"}, 4,
			[]string{"taint went from 0x0 to 0x200", "ended with status 4"}},
		{"a kernel that panicked", false, nil, []string{"sh", "-c", "echo on its way; echo c > /proc/sysrq-trigger"}, 126,
			[]string{"the kernel panicked", "sysrq triggered crash"}},
		{"a machine that went down", false, nil, []string{"sh", "-c", "echo o > /proc/sysrq-trigger; sleep 1000"}, 125,
			[]string{"ended without a result", "Power down"}},
		{"a machine that cannot begin", false, []string{"--sysctl", "no.such.key=1"}, []string{"true"}, 125,
			[]string{"sysctl no.such.key=1: open /proc/sys/no/such/key: no such file or directory"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long {
				long(t)
			}
			t.Parallel()
			r := rdsLab(t, append(append(append([]string{"run"}, test.options...), "--"), test.command...)...)
			stdout := ""
			if strings.Contains(r.stdout, "on its way") {
				stdout = "on its way\n" // it is not known how much of it comes through
			}
			r.want(test.status, stdout).wantStderr(test.stderr...)
			if test.stderr == nil && r.stderr != "" {
				t.Errorf("stderr is %q, want none", r.stderr)
			}
		})
	}
}
