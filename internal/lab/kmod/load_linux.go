package kmod

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// InsertFile loads one module, which may be compressed, into the running
// kernel. A module that is loaded already is fine.
func InsertFile(name string) error {
	err := insertFile(name)
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("load module %s: %w", name, err)
	}
	return nil
}

func insertFile(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	flags := 0
	if filepath.Ext(name) != ".ko" {
		flags = unix.MODULE_INIT_COMPRESSED_FILE
	}
	err = unix.FinitModule(int(f.Fd()), "", flags)
	if flags == 0 || !notByKernel(err) {
		return os.NewSyscallError("finit_module", err)
	}
	b, err := ReadModule(name)
	if err != nil {
		return err
	}
	return os.NewSyscallError("init_module", unix.InitModule(b, ""))
}

// notByKernel tells whether the kernel refused a module since it does not
// uncompress modules, or not of that kind (kernel/module/main.c and
// decompress.c).
func notByKernel(err error) bool {
	return errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOEXEC)
}
