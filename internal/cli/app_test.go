package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

type values struct {
	count    Number
	interval Interval
	tos      TOSList
	quiet    bool
	operands []string
	ran      bool
}

// testApp declares a program like rds-ping.
func testApp(v *values, action error) *App {
	v.count = Number{Max: 100}
	v.interval = Interval{Duration: time.Second}
	return &App{
		Name:        "rds-test",
		Usage:       "Test the command line.",
		ArgsUsage:   "HOST...",
		Version:     "1.2.3",
		Description: "Examples:\n  rds-test -c1 -i 4 10.0.0.1\n",
		Flags: []Flag{
			&GenericFlag{Name: "count", Aliases: []string{"c"}, Usage: "stop after `N` of them", Value: &v.count},
			&GenericFlag{Name: "interval", Aliases: []string{"i"}, Usage: "wait `TIME` between two of them, a time that is long enough to need a second line", Value: &v.interval},
			&GenericFlag{Name: "tos", Aliases: []string{"Q"}, Usage: "types of service, a `LIST` of them", Value: &v.tos},
			&BoolFlag{Name: "quiet", Aliases: []string{"q"}, Usage: "say little", Destination: &v.quiet},
			&BoolFlag{Name: "json", Usage: "one JSON object a line"},
			&BoolFlag{Name: "an-option-with-a-long-name", Usage: "explained below its name"},
		},
		Action: func(c *Context) error {
			v.ran = true
			v.operands = c.Args().Slice()
			return action
		},
	}
}

func runTest(v *values, action error, args ...string) (status int, stdout, stderr string) {
	var out, errs bytes.Buffer
	app := testApp(v, action)
	app.Writer, app.ErrWriter = &out, &errs
	status = Run(context.Background(), app, Permute, append([]string{"rds-test"}, args...))
	return status, out.String(), errs.String()
}

func TestRunBindsValuesAndOperands(t *testing.T) {
	var v values
	status, stdout, stderr := runTest(&v, nil, "10.0.0.1", "-qc3", "--int=10ms", "-Q0-2", "h", "--", "-x", "help", "count")
	if status != OK || stdout != "" || stderr != "" {
		t.Fatalf("got status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if v.count.Value != 3 || v.interval.Duration != 10*time.Millisecond || v.tos.String() != "0,1,2" || !v.quiet {
		t.Errorf("got %+v", v)
	}
	if diff := cmp.Diff([]string{"10.0.0.1", "h", "-x", "help", "count"}, v.operands); diff != "" {
		t.Errorf("operands (-want +got):\n%s", diff)
	}
}

func TestRunTakesTheLastOfRepeatedOptions(t *testing.T) {
	var v values
	if status, _, stderr := runTest(&v, nil, "-c1", "--count=2", "-i", "1ms", "-i2ms", "h"); status != OK {
		t.Fatal(stderr)
	}
	if v.count.Value != 2 || v.interval.Duration != 2*time.Millisecond {
		t.Errorf("got count %d, interval %v, want 2 and 2 ms", v.count.Value, v.interval.Duration)
	}
}

func TestRunSaysOnceWhatIsWrongWithTheUsage(t *testing.T) {
	const see = "; see rds-test --help\n"
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"-c", "2x", "h"}, `rds-test: -c "2x": not a whole number: want one such as 10, 0x10 or 4k` + see},
		{[]string{"h", "--count=-1"}, `rds-test: --count "-1": out of range: want 0 to 100` + see},
		{[]string{"--coun", "101"}, `rds-test: --coun "101": out of range: want 0 to 100` + see},
		{[]string{"-c", "", "h"}, `rds-test: -c "": not a whole number: want one such as 10, 0x10 or 4k` + see},
		{[]string{"-i", "-1", "h"}, `rds-test: -i "-1": too short a time: want at least 1 us` + see},
		{[]string{"-Q", "300", "h"}, `rds-test: -Q "300": no type of service: want 0 to 255, a list such as 0,3 or a range such as 0-7` + see},
		{[]string{"-Q", "3,256-", "h"}, `rds-test: -Q "3,256-": "256-": no type of service: want 0 to 255, a list such as 0,3 or a range such as 0-7` + see},
		{[]string{"-Q", "7-0", "h"}, `rds-test: -Q "7-0": runs backwards: want 0-7` + see},
		{[]string{"-Q", "3,7-0", "h"}, `rds-test: -Q "3,7-0": "7-0": runs backwards: want 0-7` + see},
		{[]string{"--cuont", "3", "h"}, `rds-test: --cuont is not an option (did you mean --count?)` + see},
		{[]string{"h", "-c"}, `rds-test: -c needs a value: N` + see},
	} {
		var v values
		status, stdout, stderr := runTest(&v, nil, tt.args...)
		if status != CannotTry || stdout != "" || v.ran {
			t.Errorf("%q: got status %d, stdout %q, action run %v", tt.args, status, stdout, v.ran)
		}
		if diff := cmp.Diff(tt.want, stderr); diff != "" {
			t.Errorf("%q: stderr (-want +got):\n%s", tt.args, diff)
		}
	}
}

func TestRunMapsErrorsToExitStatuses(t *testing.T) {
	for _, tt := range []struct {
		name   string
		err    error
		status int
		stderr string
	}{
		{"none", nil, OK, ""},
		{"an exit status without an error", &ExitError{Status: Failed}, Failed, ""},
		{"an exit status with an error", &ExitError{Failed, errors.New("no reply")}, Failed, "rds-test: no reply\n"},
		{"another error", errors.New("no module"), CannotTry, "rds-test: no module\n"},
		{"a usage error of the action", &UsageError{Reason: "no host given"}, CannotTry, "rds-test: no host given; see rds-test --help\n"},
		{"a reader that went away", &WriteError{syscall.EPIPE}, CannotTry, ""},
		{"a full disk", &WriteError{syscall.ENOSPC}, CannotTry, "rds-test: cannot write the output: no space left on device\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			status, stdout, stderr := runTest(new(values), tt.err, "h")
			if status != tt.status || stdout != "" || stderr != tt.stderr {
				t.Errorf("got status %d, stdout %q, stderr %q, want %d, nothing, %q", status, stdout, stderr, tt.status, tt.stderr)
			}
		})
	}
}

func TestRunWithJSONPrintsErrorsAsJSONToo(t *testing.T) {
	for _, args := range [][]string{{"--json", "h"}, {"--js", "-c", "2x"}, {"--json", "--bogus"}} {
		status, stdout, stderr := runTest(new(values), errors.New("no <module>"), args...)
		var got errorRecord
		if err := json.Unmarshal([]byte(stdout), &got); err != nil {
			t.Fatalf("%q: stdout %q: %v", args, stdout, err)
		}
		if status != CannotTry || got.Type != "error" || got.Status != status || got.Error == "" || !strings.Contains(stderr, got.Error) {
			t.Errorf("%q: got status %d, %+v, stderr %q", args, status, got, stderr)
		}
	}
}

func TestHelpAndVersionGoToStdout(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"-h"}, {"--hel"}, {"host", "-qh", "host"}} {
		var v values
		status, stdout, stderr := runTest(&v, nil, args...)
		if status != OK || stderr != "" || v.ran {
			t.Errorf("%q: got status %d, stderr %q, action run %v", args, status, stderr, v.ran)
		}
		golden := filepath.Join("testdata", "help.golden")
		if *update {
			if err := os.WriteFile(golden, []byte(stdout), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), stdout); diff != "" {
			t.Errorf("%q: help (-want +got):\n%s", args, diff)
		}
	}
	if status, stdout, stderr := runTest(new(values), nil, "--version"); status != OK || stdout != "rds-test version 1.2.3\n" || stderr != "" {
		t.Errorf("--version: got status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if Version() == "" {
		t.Error("Version is empty")
	}
}

func TestHelpOfProgramsWithCommands(t *testing.T) {
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		app := &App{
			Name: "rds-test", Usage: "Run things.", Writer: &out, ErrWriter: &errs,
			Commands: []*Command{{
				Name: "run", Usage: "run a command", ArgsUsage: "CMD ARGS...",
				Flags:  []Flag{&StringFlag{Name: "hosts", Aliases: []string{"h"}, Usage: "make `N` hosts"}},
				Action: func(c *Context) error { return &ExitError{Failed, errors.New(strings.Join(c.Args().Slice(), " "))} },
			}},
		}
		return Run(context.Background(), app, StopAtOperand, append([]string{"rds-test"}, args...)), out.String(), errs.String()
	}
	if status, stdout, _ := run("--help"); status != OK || !strings.Contains(stdout, "Commands:\n  run                     run a command\n") {
		t.Errorf("--help: got status %d and\n%s", status, stdout)
	}
	status, stdout, _ := run("run", "--help")
	if want := "Usage: rds-test run [options] CMD ARGS...\nrun a command\n\nOptions:\n  -h, --hosts N           make N hosts\n      --help              print this help and exit\n"; status != OK || stdout != want {
		t.Errorf("run --help: got status %d, stdout (-want +got):\n%s", status, cmp.Diff(want, stdout))
	}
	if status, _, stderr := run("run", "-h2", "ls", "--help"); status != Failed || stderr != "rds-test: ls --help\n" {
		t.Errorf("run -h2 ls --help: got status %d, stderr %q", status, stderr)
	}
	if status, stdout, stderr := run(); status != CannotTry || stdout != "" || stderr != "rds-test: no command given: want one of run; see rds-test --help\n" {
		t.Errorf("no command: got status %d, stdout %q, stderr %q", status, stdout, stderr)
	}
	if status, _, stderr := run("run", "--bogus"); status != CannotTry || !strings.HasSuffix(stderr, "; see rds-test run --help\n") {
		t.Errorf("run --bogus: got status %d, stderr %q", status, stderr)
	}
}

func TestHelpThatCannotBeWrittenIsAnError(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	defer full.Close()
	for _, args := range [][]string{{"--help"}, {"--version"}} {
		var errs bytes.Buffer
		app := testApp(new(values), nil)
		app.Writer, app.ErrWriter = full, &errs
		status := Run(context.Background(), app, Permute, append([]string{"rds-test"}, args...))
		if status != CannotTry || !strings.Contains(errs.String(), "no space left on device") {
			t.Errorf("%q to a full device: got status %d, stderr %q", args, status, errs.String())
		}
	}
}

// failing fails each write with the next error.
type failing []error

func (f *failing) Write([]byte) (int, error) {
	err := (*f)[0]
	*f = (*f)[1:]
	return 0, err
}

func TestOutputKeepsTheFirstErrorAndWritesNoMore(t *testing.T) {
	o := NewOutput(&failing{syscall.ENOSPC})
	for range 2 {
		if _, err := io.WriteString(o, "x"); !isWriteError(err) || !errors.Is(err, syscall.ENOSPC) || o.Err() != err {
			t.Errorf("got %v and Err %v, want a WriteError of ENOSPC from both", err, o.Err())
		}
	}
}

func TestJSONLinesAreWholeAndExact(t *testing.T) {
	var b bytes.Buffer
	j := NewJSONLines(&b)
	for _, v := range []any{map[string]any{"n": uint64(1<<64 - 1), "text": "a <b> & \"c\"\n"}, struct{}{}} {
		if err := j.Write(v); err != nil {
			t.Fatal(err)
		}
	}
	want := `{"n":18446744073709551615,"text":"a <b> & \"c\"\n"}` + "\n{}\n"
	if diff := cmp.Diff(want, b.String()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if err := j.Write(make(chan int)); err == nil || b.String() != want {
		t.Errorf("a value that has no JSON form: got error %v and output %q", err, b.String()[len(want):])
	}
}
