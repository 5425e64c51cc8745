package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
)

const (
	jobDirPrefix = "rds-lab-"
	lockFile     = "lock"
	initFile     = "init"
)

// A jobDir is the private directory of one run. A lock that launcher and keeper
// share tells a directory in use from one that was left behind.
type jobDir struct {
	path string
	lock *os.File
}

// plainPath is what the kernel's command line takes without quoting.
var plainPath = regexp.MustCompile(`^[A-Za-z0-9/._+:@=~-]+$`)

// newJobDir makes a job directory below the directory for temporary files, with
// the guest's init in it, and removes what earlier runs left there.
func newJobDir() (*jobDir, error) {
	base, err := filepath.EvalSymlinks(os.TempDir())
	if err != nil {
		return nil, fmt.Errorf("directory for temporary files: %w: set TMPDIR to one that is there", err)
	}
	if !plainPath.MatchString(base) {
		base = "/tmp"
	}
	removeStale(base)
	path, err := os.MkdirTemp(base, jobDirPrefix)
	if err != nil {
		return nil, fmt.Errorf("job directory: %w", err)
	}
	d := &jobDir{path: path}
	if err := d.fill(); err != nil {
		d.remove()
		return nil, fmt.Errorf("job directory: %w", err)
	}
	return d, nil
}

func (d *jobDir) fill() error {
	// Locked before it has its name: no other run finds it unlocked.
	f, err := os.OpenFile(filepath.Join(d.path, lockFile+".new"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	d.lock = f
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return os.NewSyscallError("flock", err)
	}
	if err := os.Rename(f.Name(), filepath.Join(d.path, lockFile)); err != nil {
		return err
	}
	// The program may lie where the guest does not see it, or be deleted.
	return copyFile(filepath.Join(d.path, initFile), "/proc/self/exe", 0o700)
}

func (d *jobDir) remove() error {
	if d.lock != nil {
		d.lock.Close()
	}
	return os.RemoveAll(d.path)
}

// result reads the result that the guest left.
func (d *jobDir) result() (*job.Result, error) { return job.ReadResult(d.path) }

// removeStale removes job directories whose launcher and keeper are both gone.
func removeStale(base string) {
	dirs, _ := filepath.Glob(filepath.Join(base, jobDirPrefix+"*"))
	for _, dir := range dirs {
		if isStale(dir) {
			os.RemoveAll(dir)
		}
	}
}

func isStale(dir string) bool {
	info, err := os.Lstat(dir)
	if err != nil || !info.IsDir() {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(st.Uid) != os.Getuid() {
		return false
	}
	f, err := os.Open(filepath.Join(dir, lockFile))
	if errors.Is(err, os.ErrNotExist) {
		// It may be about to get its lock.
		return time.Since(info.ModTime()) > time.Minute
	}
	if err != nil {
		return false
	}
	defer f.Close()
	return syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil
}

func copyFile(to, from string, perm os.FileMode) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}
