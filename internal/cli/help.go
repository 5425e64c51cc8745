package cli

import (
	"fmt"
	"io"
	"strings"

	"github.com/urfave/cli/v2"
)

const (
	helpWidth  = 79
	helpColumn = 26 // where the explanations begin
)

// writeHelp prints the help of app, or of one of its commands.
//
// A flag's Usage may name its value in backquotes, as in urfave/cli. The
// Description is printed as it stands, after the options.
func writeHelp(w io.Writer, app *App, command *Command) error {
	var b strings.Builder
	name, operands, about, description, flags := app.Name, app.ArgsUsage, app.Usage, app.Description, app.Flags
	if command != nil {
		name += " " + command.Name
		operands, about, description, flags = command.ArgsUsage, command.Usage, command.Description, command.Flags
	} else if len(app.Commands) > 0 && operands == "" {
		operands = "COMMAND ..."
	}
	fmt.Fprintf(&b, "Usage: %s\n", strings.TrimRight(name+" [options] "+operands, " "))
	if about != "" {
		fmt.Fprintf(&b, "%s\n", about)
	}
	if command == nil && len(app.Commands) > 0 {
		b.WriteString("\nCommands:\n")
		for _, c := range app.Commands {
			if !c.Hidden {
				writeEntry(&b, c.Name, c.Usage)
			}
		}
	}
	b.WriteString("\nOptions:\n")
	for _, f := range flags {
		if d, ok := f.(cli.DocGenerationFlag); ok && isVisible(f) {
			writeEntry(&b, flagNames(f), usageText(d))
		}
	}
	if description != "" {
		fmt.Fprintf(&b, "\n%s\n", strings.Trim(description, "\n"))
	}
	_, err := io.WriteString(w, b.String())
	if err != nil {
		return writeError(err)
	}
	return nil
}

func isVisible(f Flag) bool {
	v, ok := f.(cli.VisibleFlag)
	return !ok || v.IsVisible()
}

// flagNames lists the names of a flag, letters first: "-c N, --count N" is
// written "-c, --count N".
func flagNames(f Flag) string {
	var letters, words []string
	for _, n := range namesOf(f) {
		if len(n) == 1 {
			letters = append(letters, "-"+n)
		} else {
			words = append(words, "--"+n)
		}
	}
	names := strings.Join(append(letters, words...), ", ")
	if len(letters) == 0 {
		names = "    " + names
	}
	if takesValue(f) {
		names += " " + placeholder(f)
	}
	return names
}

// placeholder returns the name of a flag's value: the first part of its usage
// in backquotes.
func placeholder(f Flag) string {
	if d, ok := f.(cli.DocGenerationFlag); ok {
		if parts := strings.SplitN(d.GetUsage(), "`", 3); len(parts) == 3 {
			return parts[1]
		}
	}
	return "VALUE"
}

func usageText(d cli.DocGenerationFlag) string {
	text := strings.ReplaceAll(d.GetUsage(), "`", "")
	if def := d.GetDefaultText(); d.TakesValue() && def != "" {
		text += " (default " + def + ")"
	}
	return text
}

// writeEntry prints a name and its explanation in two columns.
func writeEntry(b *strings.Builder, name, text string) {
	line := "  " + name
	if len(line)+2 > helpColumn {
		fmt.Fprintf(b, "%s\n", line)
		line = ""
	}
	line += strings.Repeat(" ", helpColumn-len(line))
	for word := range strings.FieldsSeq(text) {
		if len(line)+1+len(word) > helpWidth && len(strings.TrimSpace(line)) > 0 {
			fmt.Fprintf(b, "%s\n", strings.TrimRight(line, " "))
			line = strings.Repeat(" ", helpColumn)
		}
		if !strings.HasSuffix(line, " ") {
			line += " "
		}
		line += word
	}
	fmt.Fprintf(b, "%s\n", strings.TrimRight(line, " "))
}
