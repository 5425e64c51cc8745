package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"
)

// The parts of urfave/cli that commands use to declare themselves.
type (
	App             = cli.App
	Command         = cli.Command
	Context         = cli.Context
	Flag            = cli.Flag
	BoolFlag        = cli.BoolFlag
	StringFlag      = cli.StringFlag
	StringSliceFlag = cli.StringSliceFlag
	GenericFlag     = cli.GenericFlag
)

// Run parses args, whose first element is the name of the program, runs the
// action of app or of one of its commands, and returns the exit status.
//
// --help (and -h, unless app uses the letter itself) prints the help on
// app.Writer, --version the version; both end with status 0 whatever else is
// on the command line, as long as it can be parsed. --completion, which is hidden, prints what makes
// a shell complete the options. Every error becomes one
// message on app.ErrWriter, and with a --json flag given also one JSON object on app.Writer:
// a usage error has status 2, an [ExitError] its own, any other error 2; for
// a command in app.Metadata, whose value is an int, that number stands for the 2.
func Run(ctx context.Context, app *App, operands Operands, args []string) int {
	if app.Writer == nil {
		app.Writer = os.Stdout
	}
	if app.ErrWriter == nil {
		app.ErrWriter = os.Stderr
	}
	if app.Name == "" {
		app.Name = "program"
	}
	addStandardFlags(app)

	line, err := parse(app, operands, args)
	if err != nil {
		return report(app, line, err)
	}
	switch {
	case line.has("help"):
		err = writeHelp(app.Writer, app, line.command)
	case line.has(completionFlag):
		err = writeCompletion(app.Writer, app, line.value(completionFlag))
	case line.has("version") && app.Version != "":
		_, err = fmt.Fprintf(app.Writer, "%s version %s\n", app.Name, app.Version)
	default:
		err = line.run(ctx, app)
	}
	return report(app, line, err)
}

// addStandardFlags appends --help, --version and --completion to the flags of app and
// of its commands, and turns off what urfave/cli would add by itself.
func addStandardFlags(app *App) {
	app.HideHelp = true
	app.HideHelpCommand = true
	app.HideVersion = true
	help := func(flags []Flag) []Flag {
		f := &BoolFlag{Name: "help", Usage: "print this help and exit", DisableDefaultText: true}
		if lookup(flags, "help") != nil {
			return flags
		}
		if lookup(flags, "h") == nil {
			f.Aliases = []string{"h"}
		}
		return append(slices.Clip(flags), Added(f)...)
	}
	app.Flags = help(app.Flags)
	if app.Version != "" && lookup(app.Flags, "version") == nil {
		app.Flags = append(app.Flags, Added(&BoolFlag{Name: "version", Usage: "print the version and exit", DisableDefaultText: true})...)
	}
	if lookup(app.Flags, completionFlag) == nil {
		app.Flags = append(app.Flags, &StringFlag{Name: completionFlag, Usage: "print the completion for `SHELL`: bash, fish or zsh", Hidden: true})
	}
	for _, c := range app.Commands {
		c.HideHelp = true
		c.HideHelpCommand = true
		c.Flags = help(c.Flags)
	}
}

// run calls the action of app, or of the command on the line, with what was given. App.Run of
// urfave/cli would parse the line once more and look each flag up among all of them, by regular
// expressions: most of what a short command cost.
func (l *commandLine) run(ctx context.Context, app *App) error {
	set, err := l.bind(app.Flags)
	if err != nil {
		return err
	}
	c := cli.NewContext(app, set, &Context{Context: ctx})
	action := app.Action
	if l.command != nil {
		if set, err = l.bind(l.command.Flags); err != nil {
			return err
		}
		c = cli.NewContext(app, set, c)
		c.Command, action = l.command, l.command.Action
	}
	if action == nil {
		return &UsageError{Reason: "no command given: want one of " + strings.Join(commandNames(app), ", ")}
	}
	return action(c)
}

func commandNames(app *App) []string {
	var names []string
	for _, c := range app.Commands {
		if !c.Hidden {
			names = append(names, c.Name)
		}
	}
	return names
}

// report prints err for people and, if asked for, for programs, and
// returns the exit status that belongs to it.
func report(app *App, line *commandLine, err error) int {
	if err == nil {
		return OK
	}
	status := CannotTry
	if line.command != nil {
		if s, ok := app.Metadata[line.command.Name].(int); ok {
			status = s
		}
	}
	var exit *ExitError
	if errors.As(err, &exit) {
		status = exit.Status
		if exit.Err == nil {
			return status
		}
	}
	if isClosedPipe(err) {
		return status
	}
	var usage *UsageError
	hint := ""
	if errors.As(err, &usage) {
		hint = "; see " + helpFor(app, line) + " --help"
	}
	fmt.Fprintf(app.ErrWriter, "%s: %v%s\n", app.Name, err, hint)
	if line.has("json") && !isWriteError(err) {
		writeJSONError(app.Writer, status, err)
	}
	return status
}

func helpFor(app *App, line *commandLine) string {
	if line != nil && line.command != nil {
		return app.Name + " " + line.command.Name
	}
	return app.Name
}

// errorRecord is what a program reads on stdout when a command fails.
type errorRecord struct {
	Type   string `json:"type"`
	Status int    `json:"exit_status"`
	Error  string `json:"error"`
}

func writeJSONError(w io.Writer, status int, err error) {
	// The message is on stderr already: nothing is left to tell it to.
	_ = NewJSONLines(w).Write(errorRecord{Type: "error", Status: status, Error: err.Error()})
}
