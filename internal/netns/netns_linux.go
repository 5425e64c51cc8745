package netns

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// Where ip-netns(8) keeps its names, and the kernel its processes.
const (
	namesDir = "/run/netns"
	procDir  = "/proc"
)

// Open opens a network namespace: /run/netns/NAME for a name of ip-netns(8), /proc/PID/ns/net for a
// number, and what contains a slash as the path that it is. The caller closes the file. That it is a
// namespace of the network, and not another, shows when it is entered.
func Open(name string) (*os.File, error) {
	if name == "" {
		return nil, errors.New("an empty name is no network namespace")
	}
	path := filepath.Join(namesDir, name)
	if _, err := strconv.ParseUint(name, 10, 31); err == nil {
		path = filepath.Join(procDir, name, "ns/net")
	} else if strings.Contains(name, "/") {
		path = name
	}
	// Should it be a FIFO, opening it must not wait for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no network namespace %q: want a name (ip netns list), the number of a process, or a path: %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !isNamespace(info) {
		f.Close()
		return nil, cmp.Or(err, fmt.Errorf("%s is not a network namespace", path))
	}
	return f, nil
}

// isNamespace reports whether a file is of the file system of namespaces (nsfs), if it can be
// told.
func isNamespace(info os.FileInfo) bool {
	own, err := os.Stat(filepath.Join(procDir, "self/ns/net"))
	if err != nil {
		return true
	}
	a, ok := own.Sys().(*syscall.Stat_t)
	b, ok2 := info.Sys().(*syscall.Stat_t)
	return !ok || !ok2 || a.Dev == b.Dev
}

// All opens the network namespaces that have a name or a process. Its own comes first, the others in
// the order of their inodes. unseen is how many processes it was not permitted to ask: 1 or more
// where /proc hides some, since it does not tell how many.
func All() (all []Namespace, unseen int, err error) {
	seen := map[uint64]bool{}
	add := func(path, name string, pid int) error {
		// A look spares opening what is there already.
		info, err := os.Stat(path)
		if err != nil {
			return err
		}
		stat, ok := info.Sys().(*syscall.Stat_t)
		if !ok || seen[stat.Ino] || !isNamespace(info) {
			return nil // a name may be left over, as an empty file
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		seen[stat.Ino] = true
		all = append(all, Namespace{Inode: stat.Ino, Name: name, PID: pid, File: f})
		return nil
	}
	names, err := os.ReadDir(namesDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, 0, err
	}
	for _, e := range names {
		_ = add(filepath.Join(namesDir, e.Name()), e.Name(), 0)
	}
	processes, err := os.ReadDir(procDir)
	if err != nil {
		return nil, 0, err
	}
	for _, e := range processes {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || pid == os.Getpid() {
			continue
		}
		if err := add(filepath.Join(procDir, e.Name(), "ns/net"), "", pid); errors.Is(err, fs.ErrPermission) {
			unseen++
		}
	}
	if Hides(procDir) {
		unseen++
	}
	// Last, since another process in it is there for longer.
	if err := add(filepath.Join(procDir, "self/ns/net"), "", 0); err != nil {
		return nil, 0, err
	}
	own, err := os.Stat(filepath.Join(procDir, "self/ns/net"))
	if err != nil {
		return nil, 0, err
	}
	for i := range all {
		if stat, ok := own.Sys().(*syscall.Stat_t); ok {
			all[i].Own = all[i].Inode == stat.Ino
		}
	}
	slices.SortFunc(all, func(a, b Namespace) int {
		if a.Own != b.Own {
			return map[bool]int{true: -1, false: 1}[a.Own]
		}
		return cmp.Compare(a.Inode, b.Inode)
	})
	return all, unseen, nil
}

// IsOwn reports whether a namespace is that of the calling thread.
func IsOwn(ns *os.File) bool {
	inode, err := Inode(int(ns.Fd()))
	own, ownErr := Inode(0)
	return err == nil && ownErr == nil && inode == own
}

// Inode returns what tells the network namespace of a descriptor from others; 0 is that of the
// calling thread.
func Inode(fd int) (uint64, error) {
	path := filepath.Join(procDir, "thread-self/ns/net")
	if fd != 0 {
		path = filepath.Join(procDir, "self/fd", strconv.Itoa(fd))
	}
	info, err := os.Stat(path)
	if err != nil {
		return 0, err
	}
	return info.Sys().(*syscall.Stat_t).Ino, nil
}
