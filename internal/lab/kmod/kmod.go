// Package kmod finds out which files of a kernel module tree to load, in which
// order, for a set of modules: what modprobe does, without modprobe.
package kmod

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// A Tree is the index of a module tree, the directory that depmod(8) fills
// and that holds modules.dep.
type Tree struct {
	deps    map[string][]string // path of a module: paths it needs, as in modules.dep
	paths   map[string]string   // name of a module: its path
	builtin map[string]bool
}

// Open reads the index of the module tree fsys.
func Open(fsys fs.FS) (*Tree, error) {
	t := &Tree{deps: map[string][]string{}, paths: map[string]string{}, builtin: map[string]bool{}}
	f, err := fsys.Open("modules.dep")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := t.readDeps(f); err != nil {
		return nil, err
	}
	b, err := fs.ReadFile(fsys, "modules.builtin")
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		t.builtin[Name(strings.TrimSpace(line))] = true
	}
	return t, nil
}

func (t *Tree) readDeps(r io.Reader) error {
	s := bufio.NewScanner(r)
	s.Buffer(nil, 1<<20)
	for n := 1; s.Scan(); n++ {
		line := strings.TrimSpace(s.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		file, deps, ok := strings.Cut(line, ":")
		if !ok {
			return fmt.Errorf("modules.dep line %d: no colon in %q", n, line)
		}
		t.deps[file] = strings.Fields(deps)
		t.paths[Name(file)] = file
	}
	if err := s.Err(); err != nil {
		return fmt.Errorf("modules.dep: %w", err)
	}
	return nil
}

// Name is the module's name for a file name: no directory, no suffix, and
// underscores for dashes, since the kernel takes both for the same.
func Name(file string) string {
	name, _, _ := strings.Cut(path.Base(file), ".ko")
	return strings.ReplaceAll(name, "-", "_")
}

// Has tells whether the module is in the tree or built into the kernel.
func (t *Tree) Has(name string) bool {
	name = Name(name)
	_, ok := t.paths[name]
	return ok || t.builtin[name]
}

// Load lists the files, relative to the tree, that load the named modules with
// all they depend on: each file once, after everything it needs. Modules
// that are built into the kernel are left out. A name that the tree does not
// know is an error.
func (t *Tree) Load(names ...string) ([]string, error) {
	var order []string
	seen := map[string]bool{}
	add := func(file string) {
		if !seen[file] {
			seen[file] = true
			order = append(order, file)
		}
	}
	for _, name := range names {
		file, ok := t.paths[Name(name)]
		if !ok {
			if t.builtin[Name(name)] {
				continue
			}
			return nil, fmt.Errorf("module %s is not in the module tree and not built into the kernel", name)
		}
		// depmod lists the closure, nearest first.
		deps := t.deps[file]
		for i := len(deps) - 1; i >= 0; i-- {
			add(deps[i])
		}
		add(file)
	}
	return order, nil
}
