package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestParseTakesReplyLinesOnly(t *testing.T) {
	got, err := parse([]byte("   1: 54593 usec\n   2: 64 usec (10.0.0.1)\n   3: no reply\n  12: 7 usec DUP!\n3 sent, 64 usec\n"))
	if want := []float64{54593, 64, 7}; err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
	if got, err := parse([]byte("   1: ERROR: Invalid argument\n")); err == nil {
		t.Errorf("no round trip: got %v", got)
	}
}

func TestMedian(t *testing.T) {
	for _, tt := range []struct {
		x    []float64
		want float64
	}{{[]float64{3}, 3}, {[]float64{9, 1, 2}, 2}, {[]float64{4, 1, 2, 100}, 3}} {
		if got := median(tt.x); got != tt.want {
			t.Errorf("median(%v) = %v, want %v", tt.x, got, tt.want)
		}
	}
}

func TestCompareRunsBothInTurn(t *testing.T) {
	dir := t.TempDir()
	program := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\necho "+name+" $* >> "+dir+"/log\n"+body+"\n"), 0o777); err != nil {
			t.Fatal(err)
		}
		return path
	}
	ours := program("ours", "echo '   1: 30 usec'; echo '   2: 10 usec'")
	theirs := program("theirs", "echo '   1: 10 usec'")
	var out strings.Builder
	if err := compare(&out, roundTrips, 2, ours, theirs, []string{"-c", "2"}); err != nil {
		t.Fatal(err)
	}
	if want := "median of the ratios: 2.000 (2.000 to 2.000)"; !strings.Contains(out.String(), want) {
		t.Errorf("no %q in:\n%s", want, &out)
	}
	log, err := os.ReadFile(filepath.Join(dir, "log"))
	if want := "ours -c 2\ntheirs -c 2\ntheirs -c 2\nours -c 2\n"; err != nil || string(log) != want {
		t.Errorf("ran %q, %v, want %q", log, err, want)
	}
	failing := program("failing", "exit 3")
	if err := compare(&out, roundTrips, 1, ours, failing, nil); err == nil || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("a program that fails: %v", err)
	}
}

func TestRunTimeIsThatOfTheWholeProgram(t *testing.T) {
	r, err := processorTime("sh", []string{"-c", "i=0; while [ $i -lt 10000 ]; do i=$((i + 1)); done"})
	if err != nil || len(r.figures) != 1 || r.figures[0] <= 0 || r.memory == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if _, err := processorTime("sh", []string{"-c", "exit 3"}); err == nil {
		t.Error("a program that fails gives a time")
	}
}

func TestRequestsAreThoseOfBothDirections(t *testing.T) {
	const out = "   1   1030    947    2107.32    7911.53    7909.53  120.07  7575.45 -1.00\n" +
		"   1   1040    915    2075.36    7824.61    7822.61   46.11  7679.24 -1.00  (average)\n"
	if n, err := parseAverage([]byte(out)); n != 1955 || err != nil {
		t.Errorf("%v, %v", n, err)
	}
}
