package main

import (
	"io"
	"os"
	"testing"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/labtest"
)

func TestMain(m *testing.M) { labtest.MainOf(m, main) }

func TestTheManualDescribesTheOptions(t *testing.T) {
	page, err := os.ReadFile("../../man/rds-stress.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := cli.CheckManual(newOptions(io.Discard, io.Discard).app(), string(page)); err != nil {
		t.Error(err)
	}
}
