package cli

import (
	"strings"
	"testing"
)

func TestCheckManual(t *testing.T) {
	const page = `.Sh OPTIONS
.Bl -tag
.It Fl c , -count Ar N
Not
.Fl x .
.It Fl i , Fl -interval Ar TIME
.It Fl Q , -tos Ar LIST
.It Fl q , -quiet
.It Fl -json
.It Fl -an-option-with-a-long-name
.It Fl h , -help
.It Fl -version
.El
`
	for _, tt := range []struct {
		name     string
		old, new string
		want     string // "" if the page is right
	}{
		{"a page with all options", "", "", ""},
		{"an option that is missing", ".It Fl -json\n", "", "--json is not described"},
		{"a letter that is missing", "Fl q , -quiet", "Fl -quiet", "-q is not described"},
		{"an option that does not exist", "Fl -json", "Fl -json , -yaml", "--yaml is described and is no option"},
		{"a value that is missing", " Ar N", "", "--count takes a value: true, and the page says false"},
		{"a value that does not exist", "Fl -json", "Fl -json Ar FILE", "--json takes a value: false, and the page says true"},
	} {
		err := CheckManual(testApp(new(values), nil), strings.Replace(page, tt.old, tt.new, 1))
		switch {
		case err == nil && tt.want != "", err != nil && tt.want == "":
			t.Errorf("%s: got %v", tt.name, err)
		case err != nil && !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

// The parser would take one of the two and leave the other at its default.
func TestCheckManualFindsOptionsThatAreDeclaredTwice(t *testing.T) {
	one := func(names ...string) Flag { return &BoolFlag{Name: names[0], Aliases: names[1:]} }
	for _, tt := range []struct {
		name         string
		own, command []Flag
		want         string // "" if none is
	}{
		{"each once, though the command has those of the program again", []Flag{one("json"), one("q")}, []Flag{one("json"), one("quiet", "q")}, ""},
		{"a name of the program", []Flag{one("json"), one("q"), one("json")}, nil, "rds-test has --json twice"},
		{"a letter that is a name and an alias", []Flag{one("q"), one("quiet", "q"), one("json")}, nil, "rds-test has -q twice"},
		{"a letter of a command", []Flag{one("json"), one("q")}, []Flag{one("quiet", "q"), one("json", "q")}, "rds-test check has -q twice"},
		{"within one option", []Flag{one("json"), one("q")}, []Flag{one("quiet", "q", "q")}, "rds-test check has -q twice"},
	} {
		app := &App{Name: "rds-test", Flags: tt.own, Commands: []*Command{{Name: "check", Flags: tt.command}}}
		err := CheckManual(app, ".Sh OPTIONS\n.It Fl -json\n.It Fl q , -quiet\n.It Fl h , -help\n")
		switch {
		case tt.want == "" && err != nil && strings.Contains(err.Error(), "twice"):
			t.Errorf("%s: got %v", tt.name, err)
		case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}

func TestCheckManualOfCommands(t *testing.T) {
	app := func() *App {
		return &App{
			Name:  "rds-test",
			Flags: []Flag{&BoolFlag{Name: "json"}},
			Commands: []*Command{
				{Name: "check", Flags: []Flag{&BoolFlag{Name: "down", Aliases: []string{"d"}}, &BoolFlag{Name: "json"}}},
				{Name: "diff", Flags: []Flag{&BoolFlag{Name: "json"}}},
			},
		}
	}
	const page = `.Sh OPTIONS
.It Fl -json
.It Fl h , -help
.Ss rds-test check
Holds it to thresholds.
.It Fl d , -down
.Pp
.Fl -json
is as above.
.Ss rds-test diff
.Fl -json
is as above.
.Sh EXIT STATUS
.Fl -down
`
	for _, tt := range []struct{ name, old, new, want string }{
		{"a page with all options", "", "", ""},
		{"an option that another section names", ".Fl -json\nis as above.\n.Sh", ".Sh", "--json of diff is not named in its subsection"},
		{"a word that is no option", ".Fl -json\nis as above.\n.Sh", "-json\n.Sh", "--json of diff is not named in its subsection"},
		{"an option of another command", ".It Fl d , -down\n.Pp\n.Fl -json\nis as above.\n.Ss rds-test diff\n", ".Fl -json\n.Ss rds-test diff\n.It Fl d , -down\n", "--down is described as an option of diff and is none"},
		{"no subsections", ".Ss rds-test", ".Ss", ""},
	} {
		err := CheckManual(app(), strings.ReplaceAll(page, tt.old, tt.new))
		switch {
		case err == nil && tt.want != "", err != nil && tt.want == "":
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		case err != nil && !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
