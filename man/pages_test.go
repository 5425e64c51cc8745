package man_test

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The pages that state what the kernel does, and how many rules each has at least.
var pages = map[string]int{"rds.7": 100, "rds-rdma.7": 50}

// Sections of the page that state no rules.
var withoutRules = map[string]bool{"NAME": true, "SYNOPSIS": true, "SEE ALSO": true, "BUGS": true}

// The one section whose rules may be of kernels that nobody has seen.
const unseenSection = "THE TWO DIALECTS"

// The sources that a comment of the page can name.
var (
	shown  = regexp.MustCompile(`^\.\\" shown by (\S+):(Test\w+)$`)
	read   = regexp.MustCompile(`^\.\\" read in ((?:net/rds|mm|drivers/infiniband/sw/rxe)/\w+\.c):(\w+)$`)
	unseen = `.\" not yet seen on a kernel`
)

// A paragraph is what stands between two of the macros .Sh, .Ss, .Pp, .Bl, .It
// and .El.
type paragraph struct {
	page    string
	section string
	line    int      // where it begins
	lines   []string // without comments
	sources []string // the comments
	header  bool     // it is the first item of a column list
}

func (p paragraph) String() string {
	return fmt.Sprintf("%s:%d: %q", p.page, p.line, strings.Join(p.lines, " "))
}

// needsSource tells whether the paragraph states a rule: it has text, or is a
// row of a table, and does more than introduce a list.
func (p paragraph) needsSource() bool {
	if withoutRules[p.section] || p.header {
		return false
	}
	text := false
	for _, l := range p.lines {
		text = text || !strings.HasPrefix(l, ".") || strings.Contains(l, " Ta ")
	}
	return text && !strings.HasSuffix(p.lines[len(p.lines)-1], ":")
}

func paragraphs(t *testing.T, page string) (ps []paragraph) {
	t.Helper()
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, body, ok := bytes.Cut(b, []byte("\n.Os\n"))
	if !ok {
		t.Fatalf("%s has no .Os", page)
	}
	line := bytes.Count(b[:len(b)-len(body)], []byte("\n"))
	p := paragraph{page: page}
	column := false
	for l := range strings.Lines(string(body)) {
		line++
		l = strings.TrimSuffix(l, "\n")
		macro, rest, _ := strings.Cut(l, " ")
		switch macro {
		case ".Sh", ".Ss", ".Pp", ".Bl", ".It", ".El":
			ps = append(ps, p)
			p = paragraph{page: page, section: p.section, line: line}
			switch {
			case macro == ".Sh":
				p.section = rest
			case macro == ".Bl":
				column = strings.HasPrefix(rest, "-column")
			case macro == ".It" && column:
				p.header, column = true, false
				p.lines = []string{l}
			case macro == ".It" && strings.Contains(rest, " Ta "):
				p.lines = []string{l}
			}
		default:
			if strings.HasPrefix(l, `.\"`) {
				p.sources = append(p.sources, l)
			} else {
				p.lines = append(p.lines, l)
			}
		}
	}
	return append(ps, p)
}

func TestEachRuleNamesItsSource(t *testing.T) {
	for page, atLeast := range pages {
		rules := 0
		for _, p := range paragraphs(t, page) {
			if !p.needsSource() {
				continue
			}
			rules++
			if len(p.sources) == 0 {
				t.Errorf("%v has no source", p)
			}
		}
		t.Logf("%d rules", rules)
		if rules < atLeast {
			t.Errorf("%d rules found in %s", rules, page)
		}
	}
}

func TestEachSourceIsThere(t *testing.T) {
	tests := make(map[string]map[string]bool)
	for page := range pages {
		checkSources(t, page, tests)
	}
}

func checkSources(t *testing.T, page string, tests map[string]map[string]bool) {
	t.Helper()
	for _, p := range paragraphs(t, page) {
		for _, s := range p.sources {
			if s == unseen {
				if p.section != unseenSection {
					t.Errorf("%v: %q outside %s", p, s, unseenSection)
				}
				continue
			}
			if read.MatchString(s) {
				continue
			}
			m := shown.FindStringSubmatch(s)
			if m == nil {
				t.Errorf("%v: %q names no source", p, s)
				continue
			}
			pkg, name := m[1], m[2]
			if tests[pkg] == nil {
				tests[pkg] = testsOf(t, pkg)
			}
			if !tests[pkg][name] {
				t.Errorf("%v: package %s has no test %s", p, pkg, name)
			}
		}
	}
}

// testsOf are the names of a package's tests, on whatever system.
func testsOf(t *testing.T, pkg string) map[string]bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("..", filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, name := range files {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && strings.HasPrefix(fn.Name.Name, "Test") && fn.Name.Name != "TestMain" {
				names[fn.Name.Name] = true
			}
		}
	}
	return names
}

// The numbers of the tables are those of the kernel's headers.
func TestNumbersAreTheKernels(t *testing.T) {
	b, err := os.ReadFile("../internal/abi/testdata/numbers-mainline.txt")
	if err != nil {
		t.Fatal(err)
	}
	kernel := make(map[string]string)
	for l := range strings.Lines(string(b)) {
		if f := strings.Fields(l); len(f) == 2 {
			kernel[f[0]] = f[1]
		}
	}
	row := regexp.MustCompile(`^\.It Dv ((?:SO_)?RDS_\w+) Ta (\d+) Ta `)
	found := 0
	for _, p := range paragraphs(t, "rds.7") {
		if len(p.lines) == 0 {
			continue
		}
		if m := row.FindStringSubmatch(p.lines[0]); m != nil {
			found++
			if kernel[m[1]] != m[2] {
				t.Errorf("%v: the kernel has %q", p, kernel[m[1]])
			}
		}
	}
	if found < 15 {
		t.Errorf("%d rows found", found)
	}
}

func TestMandocFindsNoFault(t *testing.T) {
	mandoc, err := exec.LookPath("mandoc")
	if err != nil {
		t.Skip("needs mandoc: install the package mandoc")
	}
	for page := range pages {
		out, _ := exec.Command(mandoc, "-T", "lint", "-W", "style", page).Output()
		for l := range strings.Lines(string(out)) {
			// Which other pages are installed says nothing about this one.
			if !strings.Contains(l, "referenced manual not found") {
				t.Error(strings.TrimSpace(l))
			}
		}
	}
}
