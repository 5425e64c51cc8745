package cli

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/urfave/cli/v2"
)

// Operands says how options and operands mix on a command line.
type Operands int

const (
	// Permute takes options after operands too, as getopt does by default:
	// rds-ping HOST -c 1.
	Permute Operands = iota
	// StopAtOperand ends the options at the first operand, as getopt does
	// when its option string begins with "+": rds-lab run CMD -x.
	StopAtOperand
)

// String returns the name of the mode.
func (o Operands) String() string {
	switch o {
	case Permute:
		return "permute"
	case StopAtOperand:
		return "stop at operand"
	}
	return fmt.Sprintf("Operands(%d)", int(o))
}

// option is one option as it was given.
type option struct {
	flag    Flag
	spelled string // as the user wrote it: -c, --count, --cou
	value   string
	valued  bool
}

// commandLine is a parsed command line: options of the program, perhaps a
// command and its options, operands.
type commandLine struct {
	program  string
	options  []option
	command  *Command
	operands []string
}

// parse splits args by the rules of getopt_long(3): clusters of letters (-Icn), values
// attached to a letter (-c1) or to a long option (--count=1) or in the next
// argument whatever it begins with (-i -1), unambiguous abbreviations of long
// options, and "--" as the end of the options. With app.Commands the first operand names a command,
// whose flags hold from there on. Those of app are refused before it, if app does something without
// a command, too.
//
// When parse fails it returns what it had understood along with the error.
func parse(app *App, mode Operands, args []string) (*commandLine, error) {
	line := &commandLine{program: app.Name}
	if len(args) == 0 {
		return line, nil
	}
	args = args[1:]
	if len(app.Commands) == 0 {
		return line, line.parse(app.Flags, mode, args)
	}
	if err := line.parse(app.Flags, StopAtOperand, args); err != nil || len(line.operands) == 0 {
		return line, err
	}
	name, rest := line.operands[0], line.operands[1:]
	line.operands = nil
	if line.command = app.Command(name); line.command == nil {
		return line, &UsageError{Reason: fmt.Sprintf("no command %q: want one of %s", name, strings.Join(commandNames(app), ", "))}
	}
	if app.Action != nil {
		if err := line.misplaced(); err != nil {
			return line, err
		}
	}
	return line, line.parse(line.command.Flags, mode, rest)
}

// misplaced is the error of an option before the command, which is of what the program does without
// one.
func (l *commandLine) misplaced() error {
	for _, o := range l.options {
		name := namesOf(o.flag)[0]
		if name == "help" || name == "version" || name == completionFlag {
			continue
		}
		e := &UsageError{Option: o.spelled, Value: o.value, valued: o.valued, Reason: "is not an option of the command " + l.command.Name}
		if lookup(l.command.Flags, name) != nil {
			e.Reason = "goes after the command " + l.command.Name
		}
		return e
	}
	return nil
}

func (l *commandLine) parse(flags []Flag, mode Operands, args []string) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		var err error
		switch {
		case arg == "--":
			l.operands = append(l.operands, args...)
			return nil
		case strings.HasPrefix(arg, "--"):
			args, err = l.parseLong(flags, arg, args)
		case len(arg) > 1 && arg[0] == '-':
			args, err = l.parseCluster(flags, arg, args)
		default:
			l.operands = append(l.operands, arg)
			if mode == StopAtOperand {
				l.operands = append(l.operands, args...)
				return nil
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *commandLine) parseLong(flags []Flag, arg string, rest []string) ([]string, error) {
	name, value, attached := strings.Cut(arg[2:], "=")
	spelled := "--" + name
	flag, err := lookupLong(flags, name)
	if err != nil {
		return nil, err
	}
	if !takesValue(flag) {
		if attached {
			return nil, &UsageError{Option: spelled, Value: value, valued: true, Reason: "takes no value"}
		}
		l.options = append(l.options, option{flag: flag, spelled: spelled})
		return rest, nil
	}
	if !attached {
		if len(rest) == 0 {
			return nil, missingValue(flag, spelled)
		}
		value, rest = rest[0], rest[1:]
	}
	l.options = append(l.options, option{flag, spelled, value, true})
	return rest, nil
}

func (l *commandLine) parseCluster(flags []Flag, arg string, rest []string) ([]string, error) {
	for letters := arg[1:]; letters != ""; {
		_, size := utf8.DecodeRuneInString(letters)
		letter := letters[:size]
		letters = letters[size:]
		spelled := "-" + letter
		flag := lookup(flags, letter)
		if flag == nil {
			return nil, unknownLetter(flags, arg, letter)
		}
		if !takesValue(flag) {
			l.options = append(l.options, option{flag: flag, spelled: spelled})
			continue
		}
		value := letters
		if value == "" {
			if len(rest) == 0 {
				return nil, missingValue(flag, spelled)
			}
			value, rest = rest[0], rest[1:]
		}
		l.options = append(l.options, option{flag, spelled, value, true})
		return rest, nil
	}
	return rest, nil
}

// bind gives the options to their flags, of those among flags, in the order of the line, and
// returns the set of what was given, each under its first name.
//
// A flag that was not given is not applied: its Destination keeps what it holds.
func (l *commandLine) bind(flags []Flag) (*flag.FlagSet, error) {
	set := flag.NewFlagSet(l.program, flag.ContinueOnError)
	for _, o := range l.options {
		if !slices.Contains(flags, o.flag) {
			continue
		}
		name := namesOf(o.flag)[0]
		if set.Lookup(name) == nil {
			if err := o.flag.Apply(set); err != nil {
				return nil, err
			}
		}
		value := o.value
		if !o.valued {
			value = "true"
		}
		if err := set.Set(name, value); err != nil {
			return nil, &UsageError{Option: o.spelled, Value: o.value, valued: o.valued, Reason: err.Error()}
		}
	}
	return set, set.Parse(append([]string{"--"}, l.operands...))
}

// has reports whether the flag of that name was given.
func (l *commandLine) has(name string) bool {
	if l == nil {
		return false
	}
	for _, o := range l.options {
		if namesOf(o.flag)[0] == name {
			return true
		}
	}
	return false
}

// value is the last one that was given to the flag of that name.
func (l *commandLine) value(name string) string {
	for _, o := range slices.Backward(l.options) {
		if namesOf(o.flag)[0] == name {
			return o.value
		}
	}
	return ""
}

func takesValue(f Flag) bool {
	d, ok := f.(cli.DocGenerationFlag)
	return ok && d.TakesValue()
}

// namesOf are the names of f, the first one first. Flag.Names finds the same, with a regular expression
// for each name.
func namesOf(f Flag) []string {
	switch f := f.(type) {
	case *BoolFlag:
		return append([]string{f.Name}, f.Aliases...)
	case *StringFlag:
		return append([]string{f.Name}, f.Aliases...)
	case *GenericFlag:
		return append([]string{f.Name}, f.Aliases...)
	}
	return f.Names()
}

func lookup(flags []Flag, name string) Flag {
	for _, f := range flags {
		if slices.Contains(namesOf(f), name) {
			return f
		}
	}
	return nil
}

// added is the category of flags that Added marked.
const added = "added"

// Added marks flags that the C tool of the same name does not have: what abbreviates one of the others there still does here.
func Added(flags ...Flag) []Flag {
	for _, f := range flags {
		switch f := f.(type) {
		case *BoolFlag:
			f.Category = added
		case *StringFlag:
			f.Category = added
		case *GenericFlag:
			f.Category = added
		}
	}
	return flags
}

func isAdded(f Flag) bool {
	c, ok := f.(cli.CategorizableFlag)
	return ok && c.GetCategory() == added
}

// lookupLong finds a flag by its long name or an unambiguous abbreviation of
// it. An exact match wins over longer names that it begins, names of one
// flag do not compete, flags that were added do not compete with others, and hidden ones have no abbreviations.
func lookupLong(flags []Flag, name string) (Flag, error) {
	var found, old []Flag
	var names []string
	for _, f := range flags {
		for _, n := range namesOf(f) {
			if utf8.RuneCountInString(n) == 1 || !strings.HasPrefix(n, name) {
				continue
			}
			if n == name {
				return f, nil
			}
			if !isVisible(f) {
				continue
			}
			names = append(names, "--"+n)
			if !slices.Contains(found, f) {
				found = append(found, f)
				if !isAdded(f) {
					old = append(old, f)
				}
			}
		}
	}
	switch {
	case len(found) == 0 || name == "":
		return nil, unknownLong(flags, name)
	case len(old) == 1:
		return old[0], nil
	case len(found) > 1:
		return nil, &UsageError{Option: "--" + name, Reason: "is ambiguous: want one of " + strings.Join(names, ", ")}
	}
	return found[0], nil
}

func unknownLong(flags []Flag, name string) error {
	e := &UsageError{Option: "--" + name, Reason: "is not an option"}
	// What SuggestFlag finds nearest can be far: a slip rarely changes the first letter.
	shown := slices.DeleteFunc(slices.Clone(flags), func(f Flag) bool { return !isVisible(f) })
	if s := cli.SuggestFlag(shown, name, true); len(s) > 3 && name != "" && s[2] == name[0] {
		e.Reason += fmt.Sprintf(" (did you mean %s?)", s)
	}
	return e
}

func unknownLetter(flags []Flag, arg, letter string) error {
	e := &UsageError{Option: "-" + letter, Reason: "is not an option"}
	switch {
	case len(arg) == len(letter)+1:
	case lookup(flags, arg[1:]) != nil:
		e.Reason += fmt.Sprintf(" (in %s; did you mean -%s?)", arg, arg)
	default:
		e.Reason += " (in " + arg + ")"
	}
	return e
}

func missingValue(f Flag, spelled string) error {
	return &UsageError{Option: spelled, Reason: "needs a value: " + placeholder(f)}
}
