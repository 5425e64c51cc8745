//go:build !linux

package netns

import (
	"errors"
	"fmt"
	"os"
)

var errLinux = fmt.Errorf("network namespaces need Linux: %w", errors.ErrUnsupported)

// Open needs Linux.
func Open(string) (*os.File, error) { return nil, errLinux }

// All needs Linux.
func All() (all []Namespace, unseen int, err error) { return nil, 0, errLinux }

// IsOwn needs Linux.
func IsOwn(*os.File) bool { return false }

// Inode needs Linux.
func Inode(int) (uint64, error) { return 0, errLinux }
