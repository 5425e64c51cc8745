package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/rdskit/rdskit/internal/lab/job"
)

// A reaper starts processes and collects them, and orphans too, as process 1 must.
type reaper struct {
	mu      sync.Mutex // held while a process starts: it is known before it is collected
	ended   map[int]chan<- syscall.WaitStatus
	started chan struct{} // holds something after a start
}

func newReaper() *reaper {
	r := &reaper{ended: map[int]chan<- syscall.WaitStatus{}, started: make(chan struct{}, 1)}
	go r.reap()
	return r
}

func (r *reaper) reap() {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, 0, nil)
		if errors.Is(err, syscall.ECHILD) {
			<-r.started
			continue
		}
		if err != nil {
			continue
		}
		r.mu.Lock()
		if ended := r.ended[pid]; ended != nil {
			ended <- ws
			delete(r.ended, pid)
		}
		r.mu.Unlock()
	}
}

// A process is what to start, and where.
type process struct {
	args  []string
	dir   string
	env   []string
	on    string // the host, or job.InitialNamespace
	files []*os.File
	tty   bool // its stdin is the terminal that controls it
}

// start starts a process in its namespace, as leader of a process group of its own, to
// which signals are sent. How it ended comes on the channel.
func (r *reaper) start(p *process) (int, <-chan syscall.WaitStatus, error) {
	path, err := p.find()
	if err != nil {
		return 0, nil, err
	}
	attr := &syscall.ProcAttr{Dir: p.dir, Env: p.env, Sys: &syscall.SysProcAttr{Setsid: true, Setctty: p.tty}}
	for _, f := range p.files {
		attr.Files = append(attr.Files, f.Fd())
	}
	var pid int
	spawn := func() (err error) {
		pid, err = syscall.ForkExec(path, p.args, attr)
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if p.on == job.InitialNamespace {
		err = spawn()
	} else {
		err = inNamespaceOf(p.on, spawn)
	}
	if err != nil {
		return 0, nil, fmt.Errorf("cannot run %q: %w", p.args[0], reason(err))
	}
	ended := make(chan syscall.WaitStatus, 1)
	r.ended[pid] = ended
	select {
	case r.started <- struct{}{}:
	default:
	}
	return pid, ended, nil
}

// find finds the program, as exec.LookPath does, by the PATH of the process and relative to
// its directory.
func (p *process) find() (string, error) {
	if info, err := os.Stat(p.dir); err != nil || !info.IsDir() {
		return "", fmt.Errorf("working directory: %w", &fs.PathError{Op: "chdir", Path: p.dir, Err: syscall.ENOENT})
	}
	name := p.args[0]
	if strings.Contains(name, "/") {
		path := name
		if !filepath.IsAbs(path) {
			path = filepath.Join(p.dir, path)
		}
		if _, err := exec.LookPath(path); err != nil {
			return "", fmt.Errorf("cannot run %q: %w", name, reason(err))
		}
		return path, nil
	}
	for _, dir := range filepath.SplitList(p.path()) {
		if name == "" {
			break
		}
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(p.dir, dir)
		}
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("cannot run %q: %w", name, exec.ErrNotFound)
}

// path is the PATH of the process; without one, that of this process.
func (p *process) path() string {
	path := os.Getenv("PATH")
	for _, kv := range p.env {
		if v, ok := strings.CutPrefix(kv, "PATH="); ok {
			path = v
		}
	}
	return path
}
