// Package module says whether a kernel module is there, and what keeps it
// away. It looks at files only: a socket(2) or setsockopt(2) may load modules.
package module

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"
)

// A System is where to look. The zero System is the running one.
type System struct {
	// Root is a directory to look in instead of "/".
	Root string
}

// configDirs are where modprobe(8) and sysctl(8) have their directories of configuration, the first that
// has a file of some name hiding the others' (modprobe.d(5), sysctl.d(5)).
var configDirs = []string{"/etc", "/run", "/usr/local/lib", "/usr/lib", "/lib"}

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

// commandLine is where the kernel shows how it was booted.
const commandLine = "/proc/cmdline"

// A Rule keeps a module from being loaded: a line in the configuration of modprobe, a parameter on the
// command line of the kernel, or the sysctl kernel.modules_disabled.
type Rule struct {
	File string
	Line int // 0 for a parameter of the kernel
	Text string
}

// String returns the rule and where it stands.
func (r Rule) String() string {
	switch {
	case r.Line > 0:
		return fmt.Sprintf("%q in %s, line %d", r.Text, r.File, r.Line)
	case r.OnCommandLine():
		return fmt.Sprintf("%q on the kernel's command line", r.Text)
	}
	return fmt.Sprintf("%q", r.Text)
}

// OnCommandLine reports whether the kernel was booted with the rule.
func (r Rule) OnCommandLine() bool { return r.File == commandLine }

// Blacklisted reports whether the rule only stops loading by alias: modprobe
// with the name of the module still loads it.
func (r Rule) Blacklisted() bool {
	return strings.HasPrefix(r.Text, "blacklist ") || strings.HasPrefix(r.Text, "alias ") || strings.HasPrefix(r.Text, modprobeBlacklist)
}

// UntilReboot reports whether nothing that is done now undoes the rule.
func (r Rule) UntilReboot() bool {
	return r.DisablesAll() || strings.HasPrefix(r.Text, kernelBlacklist)
}

// DisablesAll reports whether the rule stops the loading of all modules.
func (r Rule) DisablesAll() bool { return r.Text == modulesDisabled }

// Texts of rules that are not of the configuration of modprobe.
const (
	modprobeBlacklist = "modprobe.blacklist="
	kernelBlacklist   = "module_blacklist="
	modulesDisabled   = "kernel.modules_disabled=1"
)

// Blocked returns the rule that keeps the module away, or one of its aliases. What
// stops all loading goes before what stops loading by alias, and what holds until a reboot before all.
func (s System) Blocked(name string, aliases ...string) (Rule, bool) {
	if r, ok := s.disabled(); ok && !s.Loaded(name) {
		return r, true
	}
	found := s.commandLineRules(name)
	for _, file := range s.configFiles("modprobe.d") {
		rules, err := s.rules(file, name, aliases)
		if err != nil {
			continue
		}
		found = append(found, rules...)
	}
	for _, is := range []func(Rule) bool{
		Rule.UntilReboot,
		func(r Rule) bool { return !r.Blacklisted() },
		func(r Rule) bool { return !r.OnCommandLine() },
	} {
		if i := slices.IndexFunc(found, is); i >= 0 {
			return found[i], true
		}
	}
	if len(found) > 0 {
		return found[0], true
	}
	return Rule{}, false
}

// commandLineRules finds the parameters that keep the module away. Their lists spell its name as the kernel does.
func (s System) commandLineRules(name string) []Rule {
	text, err := os.ReadFile(s.path(commandLine))
	if err != nil {
		return nil
	}
	var rules []Rule
	var last Rule // of module_blacklist, which holds as it was given last (kernel/module/main.c)
	for _, p := range parameters(string(text)) {
		key, list, _ := strings.Cut(p, "=")
		rule := Rule{File: commandLine, Text: p}
		lists := slices.Contains(strings.Split(list, ","), name)
		switch key += "="; {
		case canonical(key) == kernelBlacklist:
			rule.Text = kernelBlacklist + list
			if last = rule; !lists {
				last = Rule{}
			}
		case key == modprobeBlacklist && lists:
			rules = append(rules, rule)
		}
	}
	if last != (Rule{}) {
		rules = append(rules, last)
	}
	return rules
}

// parameters are those of the kernel on its command line, without the quotes that keep blanks in one
// (lib/cmdline.c:next_arg). What follows -- is for the first program.
func parameters(line string) []string {
	quoted := false
	all := strings.FieldsFunc(line, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return !quoted && unicode.IsSpace(r)
	})
	for i := range all {
		if all[i] == "--" {
			return all[:i]
		}
		all[i] = strings.ReplaceAll(all[i], `"`, "")
	}
	return all
}

// disabled returns the rule by which the kernel loads no module any more, with the line that set it if
// that is found.
func (s System) disabled() (Rule, bool) {
	const sysctl = "/proc/sys/kernel/modules_disabled"
	value, err := os.ReadFile(s.path(sysctl))
	if err != nil || strings.TrimSpace(string(value)) != "1" {
		return Rule{}, false
	}
	for _, file := range append(s.configFiles("sysctl.d"), "/etc/sysctl.conf") {
		text, err := os.ReadFile(s.path(file))
		if err != nil {
			continue
		}
		n := 0
		for line := range strings.Lines(string(text)) {
			n++
			key, value, _ := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "-"), "=")
			if strings.ReplaceAll(strings.TrimSpace(key), "/", ".") == "kernel.modules_disabled" && strings.TrimSpace(value) == "1" {
				return Rule{file, n, modulesDisabled}, true
			}
		}
	}
	return Rule{File: sysctl, Text: modulesDisabled}, true
}

// configFiles lists the files of a directory of configuration, without Root.
func (s System) configFiles(dir string) []string {
	var files []string
	seen := make(map[string]bool)
	for _, parent := range configDirs {
		entries, err := os.ReadDir(s.path(filepath.Join(parent, dir)))
		if err != nil {
			continue
		}
		for _, e := range entries {
			if name := e.Name(); strings.HasSuffix(name, ".conf") && !seen[name] {
				seen[name] = true
				files = append(files, filepath.Join(parent, dir, name))
			}
		}
	}
	return files
}

// rules finds the lines of a file of modprobe that keep the module away. A line that ends in a backslash
// goes on in the next.
func (s System) rules(file, name string, aliases []string) ([]Rule, error) {
	text, err := os.ReadFile(s.path(file))
	if err != nil {
		return nil, err
	}
	var rules []Rule
	whole, begin, n := "", 1, 0
	for line := range strings.Lines(string(text)) {
		n++
		line, goesOn := strings.CutSuffix(strings.TrimSuffix(line, "\n"), "\\")
		if whole += line; goesOn {
			continue
		}
		if words := strings.Fields(whole); blocks(words, append(aliases, name)) {
			rules = append(rules, Rule{file, begin, strings.Join(words, " ")})
		}
		whole, begin = "", n+1
	}
	return rules, nil
}

// blocks reports whether a line keeps a module with these names away. Of install and alias the name may
// be a pattern.
func blocks(words, names []string) bool {
	if len(words) < 2 {
		return false
	}
	is := func(match func(pattern, name string) (bool, error)) bool {
		return slices.ContainsFunc(names, func(name string) bool {
			ok, _ := match(canonical(words[1]), canonical(name))
			return ok
		})
	}
	switch words[0] {
	case "blacklist": // what follows the name does not count
		return is(func(pattern, name string) (bool, error) { return pattern == name, nil })
	case "install":
		return len(words) > 2 && is(path.Match) && !loads(words[2:])
	case "alias":
		return len(words) > 2 && words[2] == "off" && is(path.Match)
	}
	return false
}

// loads reports whether the command of an install line loads a module by itself.
func loads(command []string) bool {
	return slices.ContainsFunc(command, func(word string) bool {
		base := path.Base(strings.Trim(word, `;&|(){}"'`))
		return base == "modprobe" || base == "insmod"
	})
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
