package main

import (
	"io"
	"os"
	"testing"

	"github.com/rdskit/rdskit/internal/cli"
)

func TestTheManualDescribesTheOptions(t *testing.T) {
	page, err := os.ReadFile("../../man/rds-ping.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := cli.CheckManual(newOptions(io.Discard, io.Discard, false).app(), string(page)); err != nil {
		t.Error(err)
	}
}
