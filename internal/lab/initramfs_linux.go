package lab

import (
	"bufio"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/rdskit/rdskit/internal/lab/cpio"
	"github.com/rdskit/rdskit/internal/lab/job"
	"github.com/rdskit/rdskit/internal/lab/kernel"
	"github.com/rdskit/rdskit/internal/lab/kmod"
)

// writeInitramfs writes what a PC needs to get at the host's files: init
// and the modules that it loads first.
func writeInitramfs(name, init string, k kernel.Image) (err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	w := bufio.NewWriter(f)
	a := cpio.NewWriter(w)
	// Errors of the writer stick until Close.
	for _, dir := range []string{"dev", "proc", "sys", job.ModuleDir} {
		a.Dir(dir, 0o755)
	}
	a.CharDevice("dev/console", 0o600, 5, 1)
	if err := addProgram(a, "init", init); err != nil {
		return err
	}
	if err := addModules(a, k); err != nil {
		return err
	}
	if err := a.Close(); err != nil {
		return err
	}
	return w.Flush()
}

// addModules adds the modules in the order of their names.
func addModules(a *cpio.Writer, k kernel.Image) error {
	if k.Modules == "" {
		return nil
	}
	tree, err := kmod.Open(os.DirFS(k.Modules))
	if err != nil {
		return err
	}
	names := kernel.TransportModules(kernel.QEMU)
	if tree.Has("pvpanic_pci") {
		names = append(names, "pvpanic_pci")
	}
	files, err := tree.Load(names...)
	if err != nil {
		return fmt.Errorf("%s: %w", k.Modules, err)
	}
	for i, file := range files {
		data, err := kmod.ReadModule(filepath.Join(k.Modules, file))
		if err != nil {
			return err
		}
		if err := a.File(fmt.Sprintf("%s/%02d-%s.ko", job.ModuleDir, i, kmod.Name(file)), 0o600, data); err != nil {
			return err
		}
	}
	return nil
}

// addProgram adds a program under a name of its own, and the shared libraries
// that it needs, if any, under theirs: 'go install' links to the C library
// where there is a C compiler.
func addProgram(a *cpio.Writer, name, path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := a.File(name, 0o755, data); err != nil {
		return err
	}
	interpreter, err := interpreterOf(f)
	if err != nil || interpreter == "" {
		return err
	}
	added := map[string]bool{}
	if err := addLibrary(a, interpreter, added); err != nil {
		return err
	}
	return addLibraries(a, f, added)
}

func interpreterOf(f *elf.File) (string, error) {
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(p.Open())
			return strings.TrimRight(string(b), "\x00"), err
		}
	}
	return "", nil
}

func addLibraries(a *cpio.Writer, f *elf.File, added map[string]bool) error {
	names, err := f.ImportedLibraries()
	if err != nil {
		return err
	}
	for _, name := range names {
		path, err := findLibrary(name)
		if err != nil {
			return err
		}
		if err := addLibrary(a, path, added); err != nil {
			return err
		}
	}
	return nil
}

func findLibrary(name string) (string, error) {
	for _, pattern := range []string{"/lib/*-linux-gnu", "/usr/lib/*-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib"} {
		paths, _ := filepath.Glob(filepath.Join(pattern, name))
		if len(paths) > 0 {
			return paths[0], nil
		}
	}
	return "", fmt.Errorf("rds-lab is linked to the shared library %s, which is not found: build it with CGO_ENABLED=0", name)
}

// addLibrary adds a library under the path by which it is looked up, and those
// that it needs.
func addLibrary(a *cpio.Writer, path string, added map[string]bool) error {
	if added[path] {
		return nil
	}
	added[path] = true
	addParents(a, filepath.Dir(path), added)
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := a.File(strings.TrimPrefix(path, "/"), 0o755, data); err != nil {
		return err
	}
	f, err := elf.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	return addLibraries(a, f, added)
}

// addParents adds a directory with all above it.
func addParents(a *cpio.Writer, dir string, added map[string]bool) {
	if dir == "/" || added[dir] {
		return
	}
	added[dir] = true
	addParents(a, filepath.Dir(dir), added)
	a.Dir(strings.TrimPrefix(dir, "/"), 0o755)
}
