package rdsinfo

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/internal/netns"
)

// A Process has a socket open.
type Process struct {
	PID     int    `json:"pid"`
	Command string `json:"command"` // of /proc/PID/comm, at most 15 bytes
}

// Processes looks through /proc for the processes that have sockets open, and
// returns them by the sockets' inodes, sorted by PID. It costs a look at each open file
// of each process. A child that inherited a socket has it open too.
//
// unseen is how many processes it was not permitted to look into: those of other
// users, without CAP_SYS_PTRACE. It is 1 or more where /proc hides them (hidepid), since it does not
// tell how many.
func Processes() (byInode map[uint64][]Process, unseen int, err error) {
	return processes("/proc")
}

func processes(proc string) (byInode map[uint64][]Process, unseen int, err error) {
	entries, err := os.ReadDir(proc)
	if err != nil {
		return nil, 0, err
	}
	byInode = make(map[uint64][]Process)
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		inodes, err := openSockets(filepath.Join(proc, e.Name(), "fd"))
		if errors.Is(err, fs.ErrPermission) {
			unseen++
		}
		if len(inodes) == 0 {
			continue // or the process has ended
		}
		comm, err := os.ReadFile(filepath.Join(proc, e.Name(), "comm"))
		if err != nil {
			continue
		}
		p := Process{pid, strings.TrimSuffix(string(comm), "\n")}
		for _, inode := range inodes {
			byInode[inode] = append(byInode[inode], p)
		}
	}
	if netns.Hides(proc) {
		unseen++
	}
	for _, ps := range byInode {
		slices.SortFunc(ps, func(a, b Process) int { return a.PID - b.PID })
	}
	return byInode, unseen, nil
}

// openSockets returns the inodes of the sockets among the files of a directory fd
// of /proc, each once.
func openSockets(dir string) ([]uint64, error) {
	d, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if err != nil {
		return nil, err
	}
	var inodes []uint64
	for _, name := range names {
		link, err := os.Readlink(filepath.Join(dir, name))
		if err != nil {
			continue // closed since
		}
		if number, ok := strings.CutPrefix(link, "socket:["); ok {
			if inode, err := strconv.ParseUint(strings.TrimSuffix(number, "]"), 10, 64); err == nil {
				inodes = append(inodes, inode)
			}
		}
	}
	slices.Sort(inodes)
	return slices.Compact(inodes), nil
}
