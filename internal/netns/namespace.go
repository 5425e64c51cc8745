// Package netns finds network namespaces by what people call them.
package netns

import "os"

// A Namespace is a network namespace of this host.
type Namespace struct {
	Inode uint64 // what tells it from others
	Name  string // of ip-netns(8), empty if it has none
	Own   bool   // it is that of this process
	// File is open, for the caller to close.
	File *os.File
}
