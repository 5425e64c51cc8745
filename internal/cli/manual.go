package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// CheckManual compares the options of app and its commands with those that a
// manual page, in mdoc(7), describes. The page has an item for each:
//
//	.It Fl c , -count Ar N
//
// The error lists the options that one has and the other has not, and those
// that take a value in one only, and options that are declared twice.
//
// If a command has a subsection of the page (".Ss rds-info check"), that names each of its options,
// if only as one that is described elsewhere, and describes no other's.
func CheckManual(app *App, page string) error {
	addStandardFlags(app)
	have := make(map[string]bool) // whether the option takes a value
	addOptions(have, app.Flags)
	faults := namedTwice(app.Name, app.Flags)
	for _, c := range app.Commands {
		addOptions(have, c.Flags)
		faults = append(faults, namedTwice(app.Name+" "+c.Name, c.Flags)...)
	}
	described := manualOptions(page)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		value, ok := described[name]
		switch {
		case !ok:
			faults = append(faults, name+" is not described")
		case value != have[name]:
			faults = append(faults, fmt.Sprintf("%s takes a value: %t, and the page says %t", name, have[name], value))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		if _, ok := have[name]; !ok {
			faults = append(faults, name+" is described and is no option")
		}
	}
	for _, c := range app.Commands {
		if section := subsection(page, app.Name+" "+c.Name); section != "" {
			faults = append(faults, checkSubsection(c, section)...)
		}
	}
	if len(faults) > 0 {
		return fmt.Errorf("the manual page of %s: %s", app.Name, strings.Join(faults, "; "))
	}
	return nil
}

func addOptions(have map[string]bool, flags []Flag) {
	for _, f := range flags {
		if !isVisible(f) {
			continue
		}
		for _, name := range namesOf(f) {
			have[dashed(name)] = takesValue(f)
		}
	}
}

// namedTwice finds names that two flags of one command line have.
func namedTwice(command string, flags []Flag) []string {
	seen := make(map[string]bool)
	var faults []string
	for _, f := range flags {
		for _, name := range namesOf(f) {
			if seen[name] {
				faults = append(faults, fmt.Sprintf("%s has %s twice", command, dashed(name)))
			}
			seen[name] = true
		}
	}
	return faults
}

// dashed is the name of an option as it is written.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

// manualOptions finds the items of a page that describe options.
func manualOptions(page string) map[string]bool {
	options := make(map[string]bool)
	for line := range strings.Lines(page) {
		words := strings.Fields(line)
		if len(words) < 3 || words[0] != ".It" || words[1] != "Fl" {
			continue
		}
		var names []string
		value := false
		for _, w := range words[2:] {
			switch w {
			case "Fl", ",":
				continue
			case "Ar":
				value = true
			}
			if value {
				break
			}
			names = append(names, "-"+w)
		}
		for _, n := range names {
			options[n] = value
		}
	}
	return options
}

// subsection returns the text below a heading, empty if there is none.
func subsection(page, title string) string {
	_, text, ok := strings.Cut(page, "\n.Ss "+title+"\n")
	if !ok {
		return ""
	}
	for _, end := range []string{"\n.Ss ", "\n.Sh "} {
		text, _, _ = strings.Cut(text, end)
	}
	return text
}

func checkSubsection(c *Command, section string) []string {
	named := make(map[string]bool)
	for line := range strings.Lines(section) {
		_, flags, _ := strings.Cut(line, "Fl ")
		for _, w := range strings.Fields(flags) {
			named["-"+w] = true // the macro adds a dash: ".Fl -filter"
		}
	}
	own := make(map[string]bool)
	var faults []string
	for _, f := range c.Flags {
		names := namesOf(f)
		for _, n := range names {
			own[dashed(n)] = true
		}
		if isVisible(f) && names[0] != "help" && !slices.ContainsFunc(names, func(n string) bool { return named[dashed(n)] }) {
			faults = append(faults, fmt.Sprintf("%s of %s is not named in its subsection", dashed(names[0]), c.Name))
		}
	}
	for _, n := range slices.Sorted(maps.Keys(manualOptions(section))) {
		if !own[n] {
			faults = append(faults, fmt.Sprintf("%s is described as an option of %s and is none", n, c.Name))
		}
	}
	return faults
}
