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
// that take a value in one only.
func CheckManual(app *App, page string) error {
	addStandardFlags(app)
	have := make(map[string]bool) // whether the option takes a value
	addOptions(have, app.Flags)
	for _, c := range app.Commands {
		addOptions(have, c.Flags)
	}
	described := manualOptions(page)
	var faults []string
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
		for _, name := range f.Names() {
			have[dashed(name)] = takesValue(f)
		}
	}
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
