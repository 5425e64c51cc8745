// Package module says whether a kernel module is there, and what keeps it
// away. It looks at files only: a socket(2) or setsockopt(2) may load modules.
package module

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// A System is where to look. The zero System is the running one.
type System struct {
	// Root is a directory to look in instead of "/".
	Root string
}

// configDirs are where modprobe(8) reads its configuration, the first that has a
// file of some name hiding the others' (modprobe.d(5)).
var configDirs = []string{"/etc/modprobe.d", "/run/modprobe.d", "/usr/local/lib/modprobe.d", "/usr/lib/modprobe.d", "/lib/modprobe.d"}

func (s System) path(p string) string { return filepath.Join(s.Root, p) }

// Loaded reports whether the module is loaded, or built in and has parameters.
func (s System) Loaded(name string) bool {
	_, err := os.Stat(s.path("/sys/module/" + name))
	return err == nil
}

// Absent reports whether the running kernel is known to come without the module: modprobe cannot
// load it then. Where the kernel's directory of modules cannot be read, as in a container, it is not known.
func (s System) Absent(name string) bool {
	release, err := os.ReadFile(s.path("/proc/sys/kernel/osrelease"))
	if err != nil {
		return false
	}
	dir := s.path("/lib/modules/" + strings.TrimSpace(string(release)))
	dep, err := os.ReadFile(filepath.Join(dir, "modules.dep"))
	if err != nil {
		return false
	}
	builtin, _ := os.ReadFile(filepath.Join(dir, "modules.builtin")) // not all kernels have some
	return !lists(string(dep), name) && !lists(string(builtin), name)
}

// lists tells whether one of the lines begins with the path of the module, such as
// kernel/net/rds/rds.ko.xz: or kernel/net/rds/rds.ko.
func lists(lines, name string) bool {
	for line := range strings.Lines(lines) {
		path, _, _ := strings.Cut(strings.TrimSpace(line), ":")
		base, _, _ := strings.Cut(filepath.Base(path), ".ko")
		if canonical(base) == canonical(name) {
			return true
		}
	}
	return false
}

// A Rule is a line in the configuration of modprobe that keeps a module from
// being loaded.
type Rule struct {
	File string
	Line int
	Text string
}

// String returns the rule and where it stands.
func (r Rule) String() string { return fmt.Sprintf("%q in %s, line %d", r.Text, r.File, r.Line) }

// Blacklisted reports whether the rule only stops loading by alias: modprobe
// with the name of the module still loads it.
func (r Rule) Blacklisted() bool { return !strings.HasPrefix(r.Text, "install") }

// Blocked returns the rule that keeps the module away, or one of its aliases. A
// rule that stops all loading goes before one that stops loading by alias.
func (s System) Blocked(name string, aliases ...string) (Rule, bool) {
	var found []Rule
	for _, file := range s.configFiles() {
		rules, err := s.rules(file, name, aliases)
		if err != nil {
			continue
		}
		found = append(found, rules...)
	}
	if len(found) == 0 {
		return Rule{}, false
	}
	if i := slices.IndexFunc(found, func(r Rule) bool { return !r.Blacklisted() }); i >= 0 {
		return found[i], true
	}
	return found[0], true
}

// configFiles lists the files that modprobe reads, without Root.
func (s System) configFiles() []string {
	var files []string
	seen := make(map[string]bool)
	for _, dir := range configDirs {
		entries, err := os.ReadDir(s.path(dir))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".conf") && !seen[name] {
				seen[name] = true
				files = append(files, filepath.Join(dir, name))
			}
		}
	}
	return files
}

func (s System) rules(file, name string, aliases []string) ([]Rule, error) {
	f, err := os.Open(s.path(file))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var rules []Rule
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		words := strings.Fields(lines.Text())
		if blocks(words, name, aliases) {
			rules = append(rules, Rule{file, n, strings.Join(words, " ")})
		}
	}
	return rules, lines.Err()
}

// blocks reports whether a line keeps the module, or an alias of it, away.
func blocks(words []string, name string, aliases []string) bool {
	if len(words) < 2 {
		return false
	}
	what := canonical(words[1])
	names := what == canonical(name) || slices.ContainsFunc(aliases, func(a string) bool { return canonical(a) == what })
	switch words[0] {
	case "blacklist":
		return names && len(words) == 2
	case "install":
		if !names || len(words) < 3 {
			return false
		}
		command := filepath.Base(words[2])
		return command == "true" || command == "false" || command == ":"
	case "alias":
		return names && len(words) == 3 && words[2] == "off"
	}
	return false
}

// Aliases are the names besides its own by which the kernel asks for a module of RDS.
func Aliases(name string) []string {
	if name == "rds" {
		return []string{"net-pf-21"} // of socket(2)
	}
	return nil
}

// canonical spells a module's name as modprobe compares it.
func canonical(name string) string { return strings.ReplaceAll(name, "-", "_") }
