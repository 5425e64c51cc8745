package main

import (
	"os"
	"testing"

	"github.com/rdskit/rdskit/internal/cli"
)

func TestTheManualDescribesTheOptions(t *testing.T) {
	page, err := os.ReadFile("../../man/rds-info.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := cli.CheckManual(app(os.Stdout, os.Stderr), string(page)); err != nil {
		t.Error(err)
	}
}
