package lab

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// uml is User-Mode Linux: the kernel is a program of its own.
type uml struct{}

const umlMemoryMiB = 1024

func (uml) command(c *Config, k kernel.Image, dir *jobDir, _ int) (*exec.Cmd, error) {
	memory := c.MemoryMiB
	if memory == 0 {
		memory = umlMemoryMiB
	}
	memoryDir, err := umlMemoryDir(memory, "/dev/shm", filepath.Dir(dir.path), "/var/tmp")
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path: k.Path,
		Args: umlArgs(k.Path, memory, dir.path),
		Env:  append(os.Environ(), "TMPDIR="+memoryDir),
	}, nil
}

func umlArgs(path string, memoryMiB int, dir string) []string {
	args := []string{
		path,
		fmt.Sprintf("mem=%dM", memoryMiB),
		"rootfstype=hostfs", "rootflags=/", "ro",
		"init=" + filepath.Join(dir, initFile), job.EnvInit + "=" + dir,
		// Where it keeps its process id and its management socket.
		"uml_dir=" + dir, "umid=u",
		"con=null", fmt.Sprintf("con0=null,fd:%d", consoleFD),
		"ssl=null",
		// The boot takes seconds longer with 256 legacy pseudo-terminals, self-tests of
		// all ciphers, and a benchmark of RAID 6.
		"pty.legacy_count=0", "cryptomgr.notests=1", "initcall_blacklist=raid6_select_algo",
		"loglevel=5", "panic=-1",
	}
	for line := range job.NumLines {
		args = append(args, fmt.Sprintf("ssl%d=fd:%d", line, lineFD+int(line)))
	}
	return args
}

// umlMemoryDir is the first directory that can hold the file which is the
// guest's memory. The file is sparse, but a guest that finds no room for a
// page of it dies of SIGBUS.
func umlMemoryDir(memoryMiB int, dirs ...string) (string, error) {
	for _, dir := range dirs {
		var st syscall.Statfs_t
		if err := syscall.Statfs(dir, &st); err != nil {
			continue
		}
		const noexec = 0x8 // ST_NOEXEC of statfs(2): the guest's programs run from that memory
		if int64(st.Bavail)*int64(st.Bsize)>>20 >= int64(memoryMiB) && st.Flags&noexec == 0 {
			return dir, nil
		}
	}
	return "", fmt.Errorf("none of %v has the %d MiB for the guest's memory: set TMPDIR to a directory that has, or give the guest less with --memory", dirs, memoryMiB)
}

// panicked tells whether the machine ended with SIGABRT, as a User-Mode Linux
// does when it panics (arch/um/os-Linux/util.c, os_dump_core).
func (uml) panicked(status int) bool { return status == 128+int(syscall.SIGABRT) }
