package kernel

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// A Program is a program with what it takes to run it from where it lies.
type Program struct {
	Path string
	Args []string // that come before all others
	Env  []string // in addition to the process's own
}

const qemuName = "qemu-system-x86_64"

// FindQEMU finds QEMU: installed, or unpacked below one of the roots.
func FindQEMU(roots ...string) (Program, error) {
	if path, err := exec.LookPath(qemuName); err == nil {
		return Program{Path: path}, nil
	}
	for _, root := range roots {
		path, err := exec.LookPath(filepath.Join(root, "usr/bin", qemuName))
		if err != nil {
			continue
		}
		p := Program{Path: path}
		if root != "/" {
			p.relocate(root)
		}
		return p, nil
	}
	return Program{}, errors.New(qemuName + " not found")
}

// relocate lets a program of a distribution run from below root: with the
// libraries, firmware and modules that were unpacked along with it.
func (p *Program) relocate(root string) {
	var libs []string
	for _, pattern := range []string{"usr/lib/*-linux-gnu", "lib/*-linux-gnu", "usr/lib/*-linux-gnu/pulseaudio"} {
		dirs, _ := filepath.Glob(filepath.Join(root, pattern))
		libs = append(libs, dirs...)
	}
	if old := os.Getenv("LD_LIBRARY_PATH"); old != "" {
		libs = append(libs, old)
	}
	p.Env = append(p.Env, "LD_LIBRARY_PATH="+strings.Join(libs, ":"))
	if dirs, _ := filepath.Glob(filepath.Join(root, "usr/lib/*-linux-gnu/qemu")); len(dirs) > 0 {
		p.Env = append(p.Env, "QEMU_MODULE_DIR="+dirs[0])
	}
	for _, dir := range []string{"usr/share/qemu", "usr/share/seabios"} {
		p.Args = append(p.Args, "-L", filepath.Join(root, dir))
	}
}
