package rdskit_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// What README shows is compiled, and run in the lab.
func TestReadmeShowsWhatIsCompiled(t *testing.T) {
	shown := findAll(t, "README.md", "(?ms)^```go\n(.*?)^```$")
	body := findAll(t, "rdssock/example_test.go", `(?ms)^func Example\(\) \{\n(.*?)^\}$`)[0]
	compiled := []string{
		regexp.MustCompile(`(?m)^\t`).ReplaceAllString(body, ""),
		findAll(t, "rdma/example_test.go", `(?ms)^(// share .*)`)[0],
	}
	if diff := cmp.Diff(compiled, shown); diff != "" {
		t.Errorf("README.md differs from the examples of rdssock and rdma (-example +README):\n%s", diff)
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

// findAll returns what the parentheses of the expression match in the file, wherever it does.
func findAll(t *testing.T, name, expression string) (found []string) {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile(expression).FindAllSubmatch(text, -1) {
		found = append(found, string(m[1]))
	}
	if found == nil {
		t.Fatalf("%s has nothing like %s", name, expression)
	}
	return found
}
