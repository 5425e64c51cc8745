package rdskit_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What README shows is the body of an example that is compiled, and run in the
// lab.
func TestReadmeShowsTheExampleOfRdssock(t *testing.T) {
	shown := find(t, "README.md", "(?ms)^```go\n(.*?)^```$")
	body := find(t, "rdssock/example_test.go", `(?ms)^func Example\(\) \{\n(.*?)^\}$`)
	compiled := regexp.MustCompile(`(?m)^\t`).ReplaceAllString(body, "")
	if diff := cmp.Diff(compiled, shown); diff != "" {
		t.Errorf("README.md differs from func Example (-example +README):\n%s", diff)
	}
}

func TestReadmeLinksToWhatExists(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	links := regexp.MustCompile(`\]\(([^)]+)\)`).FindAllStringSubmatch(string(readme), -1)
	if len(links) == 0 {
		t.Fatal("README.md has no links")
	}
	for _, link := range links {
		if strings.Contains(link[1], "://") {
			continue
		}
		if _, err := os.Stat(link[1]); err != nil {
			t.Error(err)
		}
	}
}

// find returns what the parentheses of the expression match in the file.
func find(t *testing.T, name, expression string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile(expression).FindSubmatch(text)
	if m == nil {
		t.Fatalf("%s has nothing like %s", name, expression)
	}
	return string(m[1])
}
