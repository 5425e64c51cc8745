package kmod

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// WriteIndex writes modules.dep for the module tree in dir, which has
// none yet, as depmod(8) does: from what each module says of itself. It writes
// none of depmod's other files.
func WriteIndex(dir string) error {
	needs := map[string][]string{} // path: names
	paths := map[string]string{}   // name: path
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if !d.Type().IsRegular() || !strings.Contains(d.Name(), ".ko") {
			return nil
		}
		path, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		b, err := ReadModule(file)
		if err != nil {
			return err
		}
		if needs[path], err = depends(b); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		paths[Name(path)] = path
		return nil
	})
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, path := range slices.Sorted(maps.Keys(needs)) {
		b.WriteString(path + ":")
		for _, dep := range closure(path, needs, paths) {
			b.WriteString(" " + dep)
		}
		b.WriteString("\n")
	}
	return os.WriteFile(filepath.Join(dir, "modules.dep"), b.Bytes(), 0o644)
}

// depends reads which modules a module needs from its section .modinfo.
func depends(module []byte) ([]string, error) {
	f, err := elf.NewFile(bytes.NewReader(module))
	if err != nil {
		return nil, err
	}
	s := f.Section(".modinfo")
	if s == nil {
		return nil, errors.New("no section .modinfo")
	}
	b, err := s.Data()
	if err != nil {
		return nil, err
	}
	for entry := range strings.SplitSeq(string(b), "\x00") {
		if list, ok := strings.CutPrefix(entry, "depends="); ok && list != "" {
			return strings.Split(list, ","), nil
		}
	}
	return nil, nil
}

// closure lists the paths of all modules that one needs, each before those that
// it needs itself, which is the order of modules.dep. A name without a
// file is one of a module that is built in.
func closure(path string, needs map[string][]string, paths map[string]string) []string {
	var order []string // what is needed first comes first
	seen := map[string]bool{path: true}
	var visit func(path string)
	visit = func(path string) {
		for _, name := range needs[path] {
			dep, ok := paths[Name(name)]
			if !ok || seen[dep] {
				continue
			}
			seen[dep] = true
			visit(dep)
			order = append(order, dep)
		}
	}
	visit(path)
	slices.Reverse(order)
	return order
}
