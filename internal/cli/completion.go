package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// A Completer is the value of a GenericFlag that knows what it may be, for the
// completion of shells. What ends in "=" or "," goes on after it.
type Completer interface {
	Completions() []string
}

// completionFlag is the name of the flag that prints the completion for a shell: hidden,
// since it is for packagers.
const completionFlag = "completion"

var shells = map[string]func(*grammar) string{
	"bash": bashCompletion,
	"fish": fishCompletion,
	"zsh":  zshCompletion,
}

// writeCompletion prints the script that makes a shell complete the options of app.
func writeCompletion(w io.Writer, app *App, shell string) error {
	script, ok := shells[shell]
	if !ok {
		return &UsageError{Option: "--" + completionFlag, Value: shell, valued: true, Reason: "want bash, fish or zsh"}
	}
	if _, err := io.WriteString(w, script(grammarOf(app))); err != nil {
		return writeError(err)
	}
	return nil
}

// A grammar is the command line of a program or of one of its commands.
type grammar struct {
	name, usage string
	options     []grammarOption
	operands    wordKind
	commands    []*grammar
}

type grammarOption struct {
	names       []string // with their dashes
	usage       string
	placeholder string // empty if it takes no value
	kind        wordKind
	words       []string // what the value may be
}

// A wordKind is what a shell can complete by itself.
type wordKind int

const (
	anyWord wordKind = iota
	fileName
	hostName
	commandName
	netnsName
)

// placeholders are names of values and operands that are of a kind.
var placeholders = []struct {
	name string
	kind wordKind
}{
	{"FILE", fileName}, {"DIR", fileName}, {"PATH", fileName}, {"HOST", hostName}, {"ADDRESS", hostName},
	{"COMMAND", commandName}, {"TESTBINARY", fileName},
}

// kindOf finds the kind in a text such as "[--] COMMAND [ARGUMENT ...]".
func kindOf(text string) wordKind {
	words := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" []().,", r) })
	for _, p := range placeholders {
		if slices.Contains(words, p.name) {
			return p.kind
		}
	}
	return anyWord
}

func grammarOf(app *App) *grammar {
	g := &grammar{name: app.Name, usage: app.Usage, options: grammarOptions(app.Flags), operands: kindOf(app.ArgsUsage)}
	for _, c := range app.Commands {
		if !c.Hidden {
			g.commands = append(g.commands, &grammar{name: c.Name, usage: c.Usage, options: grammarOptions(c.Flags), operands: kindOf(c.ArgsUsage)})
		}
	}
	if len(g.commands) > 0 {
		g.operands = anyWord
	}
	return g
}

func grammarOptions(flags []Flag) []grammarOption {
	var options []grammarOption
	for _, f := range flags {
		d, ok := f.(cli.DocGenerationFlag)
		if !ok || !isVisible(f) {
			continue
		}
		o := grammarOption{usage: usageText(d)}
		for _, n := range namesOf(f) {
			o.names = append(o.names, dashed(n))
		}
		if takesValue(f) {
			o.placeholder = placeholder(f)
			o.kind = kindOf(o.placeholder)
			if slices.Contains(namesOf(f), "netns") {
				o.kind = netnsName
			}
			if g, ok := f.(*GenericFlag); ok {
				if c, ok := g.Value.(Completer); ok {
					o.words = c.Completions()
				}
			}
		}
		options = append(options, o)
	}
	return options
}

// each calls f with the program and with each of its commands, which has a name then.
func (g *grammar) each(f func(command string, g *grammar)) {
	f("", g)
	for _, c := range g.commands {
		f(c.name, c)
	}
}

func (g *grammar) commandNames() []string {
	var names []string
	for _, c := range g.commands {
		names = append(names, c.name)
	}
	return names
}

// optionNames are those of the options, of which takingValue only those that take a value.
func (g *grammar) optionNames(takingValue bool) []string {
	var names []string
	for _, o := range g.options {
		if !takingValue || o.placeholder != "" {
			names = append(names, o.names...)
		}
	}
	return names
}

// functionName is a name that shells take for a function's.
func (g *grammar) functionName() string { return "_" + strings.ReplaceAll(g.name, "-", "_") }

func header(g *grammar, shell string) string {
	return fmt.Sprintf("# %s completion for %s; \"%[2]s --%s %[1]s\" prints it.\n", shell, g.name, completionFlag)
}
