package cli

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/urfave/cli/v2"
)

var update = flag.Bool("update", false, "write the golden files anew, where a real getopt(1) is at hand")

// testFlags is made like the options of the RDS tools: letters alone, words
// alone, both, and words that begin alike.
func testFlags() []Flag {
	return []Flag{
		&StringFlag{Name: "count", Aliases: []string{"c"}},
		&StringFlag{Name: "interval", Aliases: []string{"i"}},
		&StringFlag{Name: "I"},
		&BoolFlag{Name: "quiet", Aliases: []string{"q"}},
		&BoolFlag{Name: "n"},
		&BoolFlag{Name: "k"},
		&BoolFlag{Name: "ipv4", Aliases: []string{"4"}},
		&StringFlag{Name: "rdma-use-once"},
		&StringFlag{Name: "rdma-use-get-mr"},
		&BoolFlag{Name: "show"},
		&BoolFlag{Name: "show-params"},
		&BoolFlag{Name: "json"},
	}
}

// The same for getopt(1).
const (
	testLetters = "c:i:I:qnk4"
	testWords   = "count:,interval:,quiet,ipv4,rdma-use-once:,rdma-use-get-mr:,show,show-params,json"
)

var getoptLines = []string{
	"10.0.0.1",
	"-c1 -i 4 10.0.0.1",
	"-c 3 -I 10.0.0.2 10.0.0.1",
	"10.0.0.1 -c 1",
	"10.0.0.1 -I 10.0.0.2 -c 1 host",
	"-nkq",
	"-nkc3",
	"-nkc 3 host",
	"-qc",
	"-c",
	"--count",
	"--count=5 --interval=10ms host",
	"--count 5 host",
	"--count= host",
	"--cou 5 host",
	"--co=5 host",
	"--i 5 host",
	"--int 5 host",
	"--show",
	"--sho",
	"--show-p",
	"--rdma-use 1",
	"--rdma-use-o 1",
	"--bogus host",
	"--quiet=yes",
	"-x",
	"-nxk",
	"-i -1 host",
	"-i-1 host",
	"--interval -1 host",
	"--interval=-1 host",
	"-- -c 1",
	"host -- -c 1",
	"-c -- host",
	"- host",
	"-4 host",
	"host -q host2 -n -- -k",
	"-q -q -c1 -c2 host",
	"-ccc",
	"-q=1",
	"-c=1 host",
	"--jso h",
	"h",
	"help",
	"c -c 1",
	"--",
	"",
}

// TestGetoptAgreesWithGlibc compares with what getopt(1) of util-linux, which
// is glibc's getopt_long, made of the same lines.
func TestGetoptAgreesWithGlibc(t *testing.T) {
	for _, mode := range []Operands{Permute, StopAtOperand} {
		t.Run(mode.String(), func(t *testing.T) {
			golden := filepath.Join("testdata", "getopt-"+strings.ReplaceAll(mode.String(), " ", "-")+".golden")
			if *update {
				writeGetoptGolden(t, golden, mode)
			}
			var got bytes.Buffer
			for _, l := range getoptLines {
				got.WriteString(goldenLine(l, ownGetopt(mode, strings.Fields(l))))
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got.String()); diff != "" {
				t.Errorf("the lines come out otherwise than with getopt_long (-want +got):\n%s", diff)
			}
		})
	}
}

func goldenLine(in, out string) string { return "$ " + in + "\n" + out + "\n" }

// ownGetopt writes a parsed line as getopt(1) -u does.
func ownGetopt(mode Operands, args []string) string {
	line, err := parse(&App{Name: "test", Flags: testFlags()}, mode, append([]string{"test"}, args...))
	if err != nil {
		return "error"
	}
	var out []string
	for _, o := range line.options {
		name := o.spelled
		if long, ok := strings.CutPrefix(name, "--"); ok {
			name = "--" + fullName(o.flag, long)
		}
		out = append(out, name)
		if o.valued {
			out = append(out, o.value)
		}
	}
	return strings.Join(append(append(out, "--"), line.operands...), " ")
}

func fullName(f Flag, abbreviation string) string {
	for _, n := range namesOf(f) {
		if len(n) > 1 && strings.HasPrefix(n, abbreviation) {
			return n
		}
	}
	return abbreviation
}

func writeGetoptGolden(t *testing.T, path string, mode Operands) {
	t.Helper()
	letters := testLetters
	if mode == StopAtOperand {
		letters = "+" + letters
	}
	var b bytes.Buffer
	for _, l := range getoptLines {
		args := append([]string{"-u", "-q", "-o", letters, "-l", testWords, "--"}, strings.Fields(l)...)
		out, err := exec.CommandContext(t.Context(), "getopt", args...).Output()
		text := strings.TrimSpace(string(out))
		if err != nil {
			text = "error"
		}
		b.WriteString(goldenLine(l, text))
	}
	if err := os.WriteFile(path, b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestParseErrorsNameTheOptionAndTheWayOut(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"-x", "-x is not an option"},
		{"-nxk", "-x is not an option (in -nxk)"},
		{"-quiet", "-u is not an option (in -quiet; did you mean --quiet?)"},
		{"--cuont 3", "--cuont is not an option (did you mean --count?)"},
		{"--bogus", "--bogus is not an option"},
		{"--=3", "-- is not an option"},
		{"-c", "-c needs a value: N"},
		{"--interval", "--interval needs a value: TIME"},
		{"--quiet=yes", `--quiet "yes": takes no value`},
		{"--quiet=", `--quiet "": takes no value`},
		{"--sh", "--sh is ambiguous: want one of --show, --show-params"},
	} {
		flags := testFlags()
		flags[0].(*StringFlag).Usage = "stop after `N`"
		flags[1].(*StringFlag).Usage = "wait `TIME`"
		_, err := parse(&App{Flags: flags}, Permute, append([]string{"test"}, strings.Fields(tt.line)...))
		if err == nil {
			t.Errorf("%q: no error, want %q", tt.line, tt.want)
			continue
		}
		if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
			t.Errorf("%q (-want +got):\n%s", tt.line, diff)
		}
	}
}

func TestFlagsThatWereAddedLeaveOldAbbreviationsTheirMeaning(t *testing.T) {
	flags := append([]Flag{&BoolFlag{Name: "port"}, &BoolFlag{Name: "tasks"}, &BoolFlag{Name: "trace"}},
		Added(&BoolFlag{Name: "percentiles"}, &StringFlag{Name: "transport"}, &GenericFlag{Name: "peer", Value: new(Number)})...)
	for _, tt := range []struct{ name, want string }{
		{"p", "port"}, {"pe", ""}, {"per", "percentiles"}, {"t", ""}, {"tr", "trace"}, {"tran", "transport"},
	} {
		f, err := lookupLong(flags, tt.name)
		if tt.want == "" && err == nil || tt.want != "" && (err != nil || namesOf(f)[0] != tt.want) {
			t.Errorf("--%s: got %v, %v, want %q", tt.name, f, err, tt.want)
		}
	}
}

func TestCommandsHaveOptionsOfTheirOwn(t *testing.T) {
	app := func() *App {
		return &App{
			Name:     "test",
			Flags:    []Flag{&BoolFlag{Name: "v"}},
			Commands: []*Command{{Name: "run", Flags: []Flag{&StringFlag{Name: "hosts", Aliases: []string{"n"}}}}},
		}
	}
	a := app()
	var seen *Context
	a.Commands[0].Action = func(c *Context) error { seen = c; return nil }
	line, err := parse(a, StopAtOperand, strings.Fields("test -v run -n2 ls -l -- x"))
	if err != nil {
		t.Fatal(err)
	}
	if err := line.run(t.Context(), a); err != nil || seen == nil {
		t.Fatalf("run gives error %v", err)
	}
	if !seen.Bool("v") || seen.String("hosts") != "2" || !seen.IsSet("hosts") || seen.Command != a.Commands[0] {
		t.Errorf("got v %t, hosts %q, command %q", seen.Bool("v"), seen.String("hosts"), seen.Command.Name)
	}
	if diff := cmp.Diff([]string{"ls", "-l", "--", "x"}, seen.Args().Slice()); diff != "" {
		t.Errorf("operands (-want +got):\n%s", diff)
	}
	if _, err := parse(app(), StopAtOperand, strings.Fields("test rum")); err == nil || !strings.Contains(err.Error(), `"rum"`) || !strings.Contains(err.Error(), "run") {
		t.Errorf("an unknown command: got error %v, want one that names it and the commands there are", err)
	}
}

// FuzzParse looks for command lines that mean something else to the action than parse understood.
func FuzzParse(f *testing.F) {
	for _, l := range getoptLines {
		f.Add(strings.Join(strings.Fields(l), "\x00"), true)
		f.Add(strings.Join(strings.Fields(l), "\x00"), false)
	}
	f.Fuzz(func(t *testing.T, joined string, permute bool) {
		mode := StopAtOperand
		if permute {
			mode = Permute
		}
		args := append([]string{"test"}, strings.Split(joined, "\x00")...)
		app := &App{Name: "test", Flags: testFlags()}
		line, err := parse(app, mode, args)
		if err != nil {
			return
		}
		last := map[string]string{}
		for _, o := range line.options {
			last[namesOf(o.flag)[0]] = o.value
		}
		ran := false
		app.Action = func(c *Context) error {
			ran = true
			if !slices.Equal(c.Args().Slice(), line.operands) {
				t.Errorf("%q: operands %q, want %q", args, c.Args().Slice(), line.operands)
			}
			for _, f := range app.Flags {
				name := namesOf(f)[0]
				want, given := last[name]
				if _, ok := f.(*cli.StringFlag); ok && c.String(name) != want {
					t.Errorf("%q: %s is %q, want %q", args, name, c.String(name), want)
				} else if !ok && c.Bool(name) != given {
					t.Errorf("%q: %s is %v, want %v", args, name, c.Bool(name), given)
				}
				if c.IsSet(name) != given {
					t.Errorf("%q: %s is said to be given: %t", args, name, !given)
				}
			}
			return nil
		}
		if err := line.run(t.Context(), app); err != nil || !ran {
			t.Fatalf("%q: the action does not run: %v", args, err)
		}
	})
}

func TestOptionsBeforeACommandAreRefusedIfTheyAreNotOfIt(t *testing.T) {
	for args, want := range map[string]string{
		"rds-test --from x check":      `--from "x": goes after the command check`,
		"rds-test -I check":            "-I is not an option of the command check",
		"rds-test --help check":        "",
		"rds-test check --from x":      "",
		"rds-test -I --from x":         "",
		"rds-test --from check":        "",
		"rds-test --from=check -- -I":  "no command \"-I\": want one of check",
		"rds-test --fro x -I check -h": `--fro "x": goes after the command check`,
	} {
		app := &App{
			Name:     "rds-test",
			Flags:    []Flag{&BoolFlag{Name: "I"}, &StringFlag{Name: "from"}},
			Action:   func(*Context) error { return nil },
			Commands: []*Command{{Name: "check", Flags: []Flag{&StringFlag{Name: "from"}}}},
		}
		addStandardFlags(app)
		_, err := parse(app, Permute, strings.Fields(args))
		if got := fmt.Sprint(err); err == nil && want != "" || err != nil && got != want {
			t.Errorf("%s: %v, want %q", args, err, want)
		}
	}
}
