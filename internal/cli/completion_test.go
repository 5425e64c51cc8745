package cli

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// shade is a value that may be one of two.
type shade struct{ StringValue }

// StringValue is any text.
type StringValue string

func (v *StringValue) Set(s string) error { *v = StringValue(s); return nil }
func (v *StringValue) String() string     { return string(*v) }

func (*shade) Completions() []string { return []string{"dark", "light"} }

// key is a value that goes on after what is completed.
type key struct{ StringValue }

func (*key) Completions() []string { return []string{"peer=", "port="} }

// completionApp has what there is to complete.
func completionApp() *App {
	return &App{
		Name:  "rds-shell",
		Usage: "Test completion.",
		Flags: []Flag{
			&BoolFlag{Name: "all", Aliases: []string{"a"}, Usage: "it's [all] of: it"},
			&GenericFlag{Name: "shade", Aliases: []string{"s"}, Value: &shade{}, Usage: "the `SHADE`"},
			&GenericFlag{Name: "filter", Value: &key{}, Usage: "rows with `KEY=VALUE`"},
			&StringFlag{Name: "from", Usage: "of `FILE`"},
			&StringFlag{Name: "name", Usage: "a `NAME`"},
			&BoolFlag{Name: "hidden", Hidden: true},
		},
		Commands: []*Command{
			{Name: "check", Usage: "hold it to thresholds", Flags: []Flag{&BoolFlag{Name: "down"}, &StringFlag{Name: "critical", Aliases: []string{"c"}, Usage: "above `N`"}}},
			{Name: "diff", Usage: "compare", ArgsUsage: "FILE FILE"},
			{Name: "run", Usage: "run it", ArgsUsage: "[--] COMMAND [ARGUMENT ...]", Flags: []Flag{&BoolFlag{Name: "down"}}},
			{Name: "secret", Hidden: true},
		},
	}
}

func completionScript(t *testing.T, shell string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	app := completionApp()
	app.Writer, app.ErrWriter = &stdout, &stderr
	if status := Run(context.Background(), app, Permute, []string{"rds-shell", "--completion", shell}); status != OK {
		t.Fatalf("status %d, %s", status, &stderr)
	}
	return stdout.String()
}

// completers ask a shell to complete lines, the script being in a file.
var completers = map[string]func(t *testing.T, script string, lines []string) [][]string{
	"bash": func(t *testing.T, script string, lines []string) (words [][]string) {
		for _, line := range lines {
			words = append(words, shellLines(t, "bash", "--norc", "-c", `source "$1"; compopt() { :; }
				# Bash splits words at "=" too.
				line=${2//=/ = }
				read -ra COMP_WORDS <<< "$line"
				[[ $line == *" " ]] && COMP_WORDS+=("")
				COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
				_rds_shell
				printf '%s\n' "${COMPREPLY[@]}"`, "bash", script, line))
		}
		return words
	},
	"fish": func(t *testing.T, script string, lines []string) (words [][]string) {
		for _, line := range lines {
			var of []string
			for _, l := range shellLines(t, "fish", "--no-config", "-c", `source $argv[1]; complete -C $argv[2]`, script, line) {
				word, _, _ := strings.Cut(l, "\t")
				if i := strings.LastIndex(word, "="); i > 0 && i < len(word)-1 {
					word = word[i+1:] // of --option=value
				}
				of = append(of, word)
			}
			words = append(words, of)
		}
		return words
	},
	"zsh": func(t *testing.T, script string, lines []string) (words [][]string) {
		var of []string
		for _, l := range shellLines(t, "zsh", append([]string{"-f", "-c", zshCapture, "zsh", filepath.Dir(script)}, lines...)...) {
			if l == "END" {
				words = append(words, of)
				of = nil
			} else {
				of = append(of, l)
			}
		}
		return words
	},
}

// zshCapture completes lines in an interactive shell on a pseudo-terminal, whose compadd
// writes down what it is given, and END after each line.
const zshCapture = `
zmodload zsh/zpty
export OUT=$1/out SCRIPTS=$1
zpty z zsh -f -i
zpty -w z 'PS1=; fpath=($SCRIPTS $fpath); autoload -Uz compinit; compinit -u -D
zmodload zsh/zutil; bindkey "^I" complete-word; bindkey "^U" kill-whole-line
compadd() {
	if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
	local -a hits; builtin compadd -A hits "$@"; (($#hits)) && print -rl -- $hits >> $OUT; builtin compadd "$@"
}
done-completing() { print END >> $OUT; comppostfuncs=(done-completing) }
comppostfuncs=(done-completing)
print READY > $OUT'
for i in {1..400}; do [[ -e $OUT ]] && break; sleep 0.05; done
for ((n = 2; n <= $#; n++)); do
	zpty -w -n z $'\C-u'${@[n]}$'\t'
	for i in {1..400}; do [[ $(grep -c END $OUT) == $((n - 1)) ]] && break; sleep 0.02; done
done
zpty -d z
grep -v READY $OUT
`

func shellLines(t *testing.T, name string, args ...string) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = t.TempDir()
	if err := os.WriteFile(filepath.Join(cmd.Dir, "a file"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(os.Environ(), "HOME="+cmd.Dir, "TERM=dumb")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %v: %s", name, err, &stderr)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
}

func TestShellsComplete(t *testing.T) {
	for shell, complete := range completers {
		t.Run(shell, func(t *testing.T) {
			if _, err := exec.LookPath(shell); err != nil {
				t.Skipf("this machine has no %s: its completion is not tried", shell)
			}
			script := filepath.Join(t.TempDir(), "_rds-shell")
			if err := os.WriteFile(script, []byte(completionScript(t, shell)), 0o666); err != nil {
				t.Fatal(err)
			}
			tests := []struct {
				line       string
				want, none []string
			}{
				{"rds-shell --", []string{"--all", "--shade", "--filter", "--from", "--name", "--help"}, []string{"--hidden", "--down", "--completion"}},
				{"rds-shell --a", []string{"--all"}, []string{"--shade"}},
				{"rds-shell ", []string{"check", "diff", "run"}, []string{"secret", "--all", "a file"}},
				{"rds-shell ch", []string{"check"}, []string{"diff"}},
				{"rds-shell --shade ", []string{"dark", "light"}, []string{"check"}},
				{"rds-shell --shade d", []string{"dark"}, []string{"light"}},
				{"rds-shell --shade=", []string{"dark", "light"}, []string{"check"}},
				{"rds-shell --shade=li", []string{"light"}, []string{"dark"}},
				{"rds-shell -s ", []string{"dark", "light"}, []string{"check"}},
				{"rds-shell --filter p", []string{"peer=", "port="}, nil},
				{"rds-shell --from a", []string{"a file"}, []string{"check"}},
				{"rds-shell --from /etc/host", []string{"hosts"}, []string{"a file"}},
				{"rds-shell --from=/etc/host", []string{"hosts"}, []string{"a file"}},
				{"rds-shell diff /etc/host", []string{"hosts"}, []string{"a file"}},
				{"rds-shell --name ", nil, []string{"check", "dark"}},
				{"rds-shell --name check --", []string{"--all"}, []string{"--down"}},
				{"rds-shell -a check --", []string{"--down", "--critical", "--help"}, []string{"--all"}},
				{"rds-shell check --critical ", nil, []string{"check", "--down"}},
				{"rds-shell check ", nil, []string{"check", "diff", "a file"}},
				{"rds-shell diff ", []string{"a file"}, []string{"check"}},
				{"rds-shell run --", []string{"--down"}, []string{"--all"}},
				{"rds-shell run slee", []string{"sleep"}, nil},
				{"rds-shell run cat a", []string{"a file"}, nil},
			}
			var lines []string
			for _, tt := range tests {
				lines = append(lines, tt.line)
			}
			all := complete(t, script, lines)
			if len(all) != len(lines) {
				t.Fatalf("%d lines of %d were completed: %q", len(all), len(lines), all)
			}
			for n, tt := range tests {
				got := all[n]
				for i := range got {
					got[i] = strings.ReplaceAll(strings.TrimRight(got[i], " "), `\`, "")
					got[i] = got[i][strings.LastIndex(got[i], "/")+1:] // zsh has the directory apart
				}
				for _, w := range tt.want {
					if !slices.Contains(got, w) {
						t.Errorf("%q: %q is not among %q", tt.line, w, got)
					}
				}
				for _, w := range tt.none {
					if slices.Contains(got, w) {
						t.Errorf("%q: %q is among %q", tt.line, w, got)
					}
				}
			}
		})
	}
}

func TestAnotherShellIsRefused(t *testing.T) {
	var stdout, stderr bytes.Buffer
	app := completionApp()
	app.Writer, app.ErrWriter = &stdout, &stderr
	status := Run(context.Background(), app, Permute, []string{"rds-shell", "--completion", "csh"})
	if want := "rds-shell: --completion \"csh\": want bash, fish or zsh; see rds-shell --help\n"; status != CannotTry || stdout.Len() > 0 || stderr.String() != want {
		t.Errorf("status %d, %q, %q", status, &stdout, &stderr)
	}
}
