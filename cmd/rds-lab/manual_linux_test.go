package main

import (
	"os"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/lab"
)

func manual(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../man/rds-lab.1")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestTheManualDescribesTheOptions(t *testing.T) {
	if err := cli.CheckManual(app(), manual(t)); err != nil {
		t.Error(err)
	}
}

func TestTheManualListsEachExitStatus(t *testing.T) {
	want := []int{cli.CannotTry, lab.ExitTimeout, lab.ExitNoResult, lab.ExitTainted, lab.ExitNotFound}
	var got []int
	for _, m := range regexp.MustCompile(`(?m)^\.It ([0-9]+)$`).FindAllStringSubmatch(manual(t), -1) {
		n, err := strconv.Atoi(m[1])
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, n)
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-the command +the page\n%s", diff)
	}
}
