package rdsinfo

import (
	"os"
	"path/filepath"

	"github.com/rdskit/rdskit/internal/module"
)

// A Module is a module of the kernel.
type Module struct {
	Name       string            `json:"name"`
	Version    string            `json:"version,omitempty"` // few modules have one
	Parameters map[string]string `json:"parameters,omitempty"`
}

// A ModuleRule keeps a module from being loaded: a line in the configuration of modprobe, a parameter on the
// kernel's command line, or the sysctl kernel.modules_disabled.
type ModuleRule struct {
	Module string `json:"module"`
	File   string `json:"file"` // /proc/cmdline for the kernel's command line
	Line   int    `json:"line"` // from 1; 0 if it is no line of a file
	Text   string `json:"text"`
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

func readModuleRules() []ModuleRule {
	var rules []ModuleRule
	for _, name := range moduleNames {
		if r, ok := (module.System{}).Blocked(name, module.Aliases(name)...); ok {
			rules = append(rules, ModuleRule{name, r.File, r.Line, r.Text})
		}
	}
	return rules
}

func readAbsentModules() []string {
	var absent []string
	for _, name := range moduleNames {
		if (module.System{}).Absent(name) {
			absent = append(absent, name)
		}
	}
	return absent
}
