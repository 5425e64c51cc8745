package rdsinfo

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// A Bundle is a Snapshot with what else there is to know about RDS on its host,
// to be kept and looked at elsewhere.
type Bundle struct {
	Host     string // its name
	Release  string // of the kernel, as in uname -r
	Snapshot *Snapshot
	// Sysctls are those of RDS, and the core ones that bound its buffers, by their
	// path below /proc/sys with dots for slashes.
	Sysctls map[string]string
	// Modules are those of RDS that are loaded or built in.
	Modules []Module
}

// A Module is a module of the kernel.
type Module struct {
	Name       string            `json:"name"`
	Version    string            `json:"version,omitempty"` // few modules have one
	Parameters map[string]string `json:"parameters,omitempty"`
}

// storedBundle is the form of a Bundle in a file.
type storedBundle struct {
	Format   string            `json:"format"`
	Version  int               `json:"version"`
	Host     string            `json:"host,omitempty"`
	Release  string            `json:"kernel_release,omitempty"`
	Sysctls  map[string]string `json:"sysctls,omitempty"`
	Modules  []Module          `json:"modules,omitempty"`
	Snapshot *Snapshot         `json:"snapshot"`
}

const (
	bundleFormat  = "rdskit bundle"
	bundleVersion = 1
	// maxBundle bounds what ReadBundle takes into memory, in bytes.
	maxBundle = 1 << 30
)

// Collect takes all tables, and reads what else goes into a Bundle. What cannot be
// read is left out.
func Collect(cfg *Config) (*Bundle, error) {
	s, err := Read(cfg)
	if err != nil {
		return nil, err
	}
	b := &Bundle{Snapshot: s, Sysctls: readSysctls("/proc/sys"), Modules: readModules("/sys/module")}
	b.Host, _ = os.Hostname()
	b.Release = readLine("/proc/sys/kernel/osrelease")
	return b, nil
}

// Write writes the bundle as JSON.
func (b *Bundle) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(storedBundle{bundleFormat, bundleVersion, b.Host, b.Release, b.Sysctls, b.Modules, b.Snapshot})
}

// ReadBundle reads what Write wrote. A bundle of a later version is refused.
func ReadBundle(r io.Reader) (*Bundle, error) {
	limited := &io.LimitedReader{R: r, N: maxBundle}
	var stored storedBundle
	d := json.NewDecoder(limited)
	if err := d.Decode(&stored); err != nil {
		if limited.N <= 0 {
			err = fmt.Errorf("it is longer than %d bytes", maxBundle)
		}
		return nil, fmt.Errorf("not a bundle of rds-info: %w", err)
	}
	switch {
	case stored.Format != bundleFormat:
		return nil, fmt.Errorf("not a bundle of rds-info: its format is %q, not %q", stored.Format, bundleFormat)
	case stored.Version != bundleVersion:
		return nil, fmt.Errorf("a bundle of version %d: this program reads version %d", stored.Version, bundleVersion)
	case stored.Snapshot == nil:
		return nil, fmt.Errorf("the bundle has no snapshot")
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows the bundle")
	}
	return &Bundle{stored.Host, stored.Release, stored.Snapshot, stored.Sysctls, stored.Modules}, nil
}

// coreSysctls bound the buffers of RDS sockets.
var coreSysctls = []string{"rmem_default", "rmem_max", "wmem_default", "wmem_max"}

func readSysctls(root string) map[string]string {
	values := make(map[string]string)
	for _, pattern := range []string{"net/rds/*", "net/rds/*/*"} {
		files, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, f := range files {
			add(values, root, f)
		}
	}
	for _, name := range coreSysctls {
		add(values, root, filepath.Join(root, "net/core", name))
	}
	return values
}

// add reads a file of one line, named by its path below root.
func add(values map[string]string, root, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		return // a directory, or not there
	}
	name, err := filepath.Rel(root, file)
	if err != nil {
		return
	}
	values[strings.ReplaceAll(name, "/", ".")] = strings.TrimSpace(string(b))
}

// moduleNames are the modules of RDS.
var moduleNames = []string{"rds", "rds_tcp", "rds_rdma"}

func readModules(root string) []Module {
	var loaded []Module
	for _, name := range moduleNames {
		dir := filepath.Join(root, name)
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		m := Module{Name: name, Version: readLine(filepath.Join(dir, "version"))}
		files, _ := filepath.Glob(filepath.Join(dir, "parameters/*"))
		for _, f := range files {
			if m.Parameters == nil {
				m.Parameters = make(map[string]string)
			}
			add(m.Parameters, filepath.Join(dir, "parameters"), f)
		}
		loaded = append(loaded, m)
	}
	return loaded
}

func readLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
