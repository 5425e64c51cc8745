// Package keeper is the process between a launcher and its virtual machine. It
// outlives a launcher that is killed, by as long as it takes to kill the
// machine and remove its files.
package keeper

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// env marks the keeper's process and names the directory to remove.
const env = "RDS_LAB_KEEPER"

// envFiles tells how many of the launcher's files the machine inherits.
const envFiles = "RDS_LAB_KEEPER_FILES"

// IsKeeper tells whether this process was made by [Command].
func IsKeeper() bool { return os.Getenv(env) != "" }

// Command is a keeper for the machine cmd. The keeper ends with the machine's
// exit status once every process of the machine is gone. It kills the machine
// when its stdin ends: hold the other end of it for as long as the machine
// is to live. If the launcher is gone by then, it removes dir.
func Command(cmd *exec.Cmd, dir string) *exec.Cmd {
	k := &exec.Cmd{
		Path:       "/proc/self/exe",
		Args:       append([]string{"rds-lab-keeper"}, cmd.Args...),
		Env:        append(cmd.Env, env+"="+dir, envFiles+"="+strconv.Itoa(len(cmd.ExtraFiles))),
		Dir:        cmd.Dir,
		Stderr:     cmd.Stderr,
		ExtraFiles: cmd.ExtraFiles,
		// Signals of the launcher's terminal are the launcher's.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	return k
}

// Main is the keeper's life. It does not return.
func Main() {
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	status, err := keep()
	if err != nil {
		fmt.Fprintf(os.Stderr, "rds-lab keeper: %v\n", err)
		status = 1
	}
	os.Exit(status)
}

func keep() (int, error) {
	dir := os.Getenv(env)
	files, err := strconv.Atoi(os.Getenv(envFiles))
	if err != nil {
		return 0, err
	}
	launcher := os.Getppid()
	os.Unsetenv(env)
	os.Unsetenv(envFiles)

	// What the machine leaves behind becomes this process's child.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become subreaper: %w", err)
	}
	// A machine that panics is not worth a core file of its memory's size.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return 0, fmt.Errorf("no core files: %w", err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	attr := &os.ProcAttr{
		Env:   os.Environ(),
		Files: []*os.File{null, os.Stderr, os.Stderr},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	for i := range files {
		attr.Files = append(attr.Files, os.NewFile(uintptr(3+i), "inherited"))
	}
	path, err := exec.LookPath(os.Args[1])
	if err != nil {
		return 0, err
	}
	machine, err := os.StartProcess(path, os.Args[1:], attr)
	if err != nil {
		return 0, err
	}
	// The machine's ends must close with the machine.
	for _, f := range attr.Files[3:] {
		f.Close()
	}
	go func() {
		io.Copy(io.Discard, os.Stdin)
		unix.Kill(-machine.Pid, unix.SIGKILL)
	}()
	state, err := machine.Wait()
	if err != nil {
		return 0, err
	}
	reap(machine.Pid)
	if os.Getppid() != launcher {
		os.RemoveAll(dir)
	}
	ws := state.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

// reap kills and collects what is left of the process group: a User-Mode
// Linux runs each of its address spaces as a process, and does not take them
// along when it is killed.
func reap(group int) {
	for range 1000 {
		unix.Kill(-group, unix.SIGKILL)
		_, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
		if errors.Is(err, unix.ECHILD) {
			return
		}
		time.Sleep(time.Millisecond)
	}
}
