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

// The variables that make a process of the same program a keeper.
const (
	envDir   = "RDS_LAB_KEEPER"       // the directory to remove
	envFiles = "RDS_LAB_KEEPER_FILES" // how many files the machine inherits
)

// stopped is what a launcher says that is there to clean up itself.
const stopped = '.'

// IsKeeper tells whether this process was started by [Start].
func IsKeeper() bool { return os.Getenv(envDir) != "" }

// A Keeper is a running keeper, as its launcher sees it.
type Keeper struct {
	cmd    *exec.Cmd
	life   io.WriteCloser // the machine lives until this is closed
	exited chan struct{}
}

// Start starts a keeper that runs the machine cmd, with cmd's Path, Args, Env,
// Stderr and ExtraFiles. When this process ends, however it ends, the keeper kills
// the machine and removes dir. It holds lock for as long as it runs.
func Start(cmd *exec.Cmd, dir string, lock *os.File) (*Keeper, error) {
	k := &Keeper{exited: make(chan struct{})}
	k.cmd = &exec.Cmd{
		Path:       "/proc/self/exe",
		Args:       append([]string{"rds-lab-keeper", cmd.Path}, cmd.Args...),
		Env:        append(cmd.Env, envDir+"="+dir, envFiles+"="+strconv.Itoa(len(cmd.ExtraFiles))),
		Stderr:     cmd.Stderr,
		ExtraFiles: append(cmd.ExtraFiles[:len(cmd.ExtraFiles):len(cmd.ExtraFiles)], lock),
		// The signals of the launcher's terminal are the launcher's.
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	var err error
	if k.life, err = k.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := k.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		k.cmd.Wait()
		close(k.exited)
	}()
	return k, nil
}

// Exited is closed when the machine is gone with all its processes.
func (k *Keeper) Exited() <-chan struct{} { return k.exited }

// Status is the exit status of a machine that is gone: 128 plus the signal's
// number if one ended it.
func (k *Keeper) Status() int { return k.cmd.ProcessState.ExitCode() }

// Stop kills the machine. The directory stays.
func (k *Keeper) Stop() {
	k.life.Write([]byte{stopped})
	k.life.Close()
}

// Main is the keeper's life. It does not return.
func Main() {
	// Only what the launcher's end says counts.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT)
	status, err := keep()
	if err != nil {
		fmt.Fprintf(os.Stderr, "rds-lab keeper: %v\n", err)
		status = 1
	}
	os.Exit(status)
}

func keep() (int, error) {
	dir := os.Getenv(envDir)
	files, err := strconv.Atoi(os.Getenv(envFiles))
	if err != nil {
		return 0, err
	}
	os.Unsetenv(envDir)
	os.Unsetenv(envFiles)
	// What the machine's processes leave behind becomes this one's child.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("become subreaper: %w", err)
	}
	// A machine that panics is not worth a core file as big as its memory.
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &unix.Rlimit{}); err != nil {
		return 0, fmt.Errorf("no core files: %w", err)
	}
	group, err := startMachine(files)
	if err != nil {
		return 0, err
	}
	orphaned := make(chan bool, 1)
	go func() {
		last, _ := io.ReadAll(os.Stdin)
		orphaned <- len(last) == 0
		// All at once: what User-Mode Linux runs on behalf of its guest must
		// not go on without it, outside.
		unix.Kill(-group, unix.SIGKILL)
	}()
	var ws unix.WaitStatus
	for {
		pid, err := unix.Wait4(group, &ws, 0, nil)
		if err != nil && !errors.Is(err, unix.EINTR) {
			return 0, err
		}
		if pid == group {
			break
		}
	}
	reap(group)
	select {
	case o := <-orphaned:
		if o {
			os.RemoveAll(dir)
		}
	default:
	}
	if ws.Signaled() {
		return 128 + int(ws.Signal()), nil
	}
	return ws.ExitStatus(), nil
}

// startMachine starts the machine as leader of a process group and returns its
// process id.
func startMachine(files int) (int, error) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return 0, err
	}
	defer null.Close()
	attr := &syscall.ProcAttr{
		Env:   os.Environ(),
		Files: []uintptr{null.Fd(), 2, 2},
		Sys:   &syscall.SysProcAttr{Setpgid: true},
	}
	const first = 3
	for fd := first; fd < first+files; fd++ {
		attr.Files = append(attr.Files, uintptr(fd))
	}
	syscall.CloseOnExec(first + files) // the lock
	pid, err := syscall.ForkExec(os.Args[1], os.Args[2:], attr)
	if err != nil {
		return 0, fmt.Errorf("start %s: %w", os.Args[1], err)
	}
	// The launcher sees its lines end when the machine's ends are closed.
	for fd := first; fd < first+files; fd++ {
		syscall.Close(fd)
	}
	return pid, nil
}

// reap kills and collects what is left of the process group: User-Mode Linux
// runs each address space of its guest as a process.
func reap(group int) {
	const patience = 2 * time.Second
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		unix.Kill(-group, unix.SIGKILL)
		for {
			pid, err := unix.Wait4(-1, nil, unix.WNOHANG, nil)
			if errors.Is(err, unix.ECHILD) {
				return
			}
			if pid == 0 {
				break
			}
		}
	}
}
