package kmod

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Insert loads the named modules of the tree in directory dir, with all they
// need, into the running kernel. A module that is loaded already is fine.
func (t *Tree) Insert(dir string, names ...string) error {
	files, err := t.Load(names...)
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	for _, file := range files {
		if err := insert(filepath.Join(dir, file)); err != nil {
			return err
		}
	}
	return nil
}

func insert(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("finit_module %s: %w", file, err)
	}
	return nil
}
