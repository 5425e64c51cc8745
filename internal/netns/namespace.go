// Package netns finds network namespaces by what people call them.
package netns

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// A Namespace is a network namespace of this host.
type Namespace struct {
	Inode uint64 // what tells it from others
	Name  string // of ip-netns(8), empty if it has none
	PID   int    // of another process in it; 0 if there is none, or it was found by its name
	Own   bool   // it is that of this process
	// File is open, for the caller to close.
	File *os.File
}

// Hides reports whether a /proc leaves out processes of others, as it does when mounted with
// hidepid=invisible (proc(5)): process 1 is there otherwise.
func Hides(proc string) bool {
	_, err := os.Stat(filepath.Join(proc, "1"))
	return errors.Is(err, fs.ErrNotExist)
}
