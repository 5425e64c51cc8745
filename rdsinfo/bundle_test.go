package rdsinfo

import (
	"fmt"
	"io"
	"strings"
	"testing"
)

// endless repeats a space and counts how much of it was read.
type endless struct{ read int }

func (e *endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	e.read += len(b)
	return len(b), nil
}

const wholeBundle = `{"format": "rdskit bundle", "version": 1, "snapshot": {"byte_order": "little", "word_size": 8, "uint64_align": 8}}`

func TestABundleWithoutEndIsRefusedAtTheBound(t *testing.T) {
	const max = 1 << 20
	for name, begin := range map[string]string{
		"in the name of its host": `{"format": "rdskit bundle", "version": 1, "host": "`,
		"before its beginning":    "",
		"after its end":           wholeBundle,
	} {
		e := &endless{}
		_, err := readBundle(io.MultiReader(strings.NewReader(begin), e), max)
		if want := fmt.Sprintf("it is longer than %d bytes", max); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", name, err, want)
		}
		if e.read > max+1 {
			t.Errorf("%s: %d bytes were read", name, e.read)
		}
	}
}

func TestABundleAsLongAsTheBoundIsRead(t *testing.T) {
	for max, want := range map[int64]bool{int64(len(wholeBundle)): true, int64(len(wholeBundle)) - 1: false} {
		if _, err := readBundle(strings.NewReader(wholeBundle), max); (err == nil) != want {
			t.Errorf("with a bound of %d bytes: %v", max, err)
		}
	}
}

func TestReadBundleStopsAt128MiB(t *testing.T) {
	if testing.Short() {
		t.Skip("reads 128 MiB")
	}
	e := &endless{}
	if _, err := ReadBundle(e); err == nil || e.read > 128<<20+1 {
		t.Errorf("error %v after %d bytes", err, e.read)
	}
}

func TestWhatIsNoBundleIsRefused(t *testing.T) {
	if _, err := ReadBundle(strings.NewReader(wholeBundle + "\n")); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"nothing", wholeBundle, "", "not a bundle of rds-info: EOF"},
		{"half a bundle", "8}}", "", "not a bundle of rds-info: unexpected EOF"},
		{"another format", "rdskit bundle", "x", `its format is "x", not "rdskit bundle"`},
		{"a later version", `"version": 1`, `"version": 2`, "a bundle of version 2: this program reads version 1"},
		{"no snapshot", `"snapshot"`, `"shot"`, "the bundle has no snapshot"},
		{"null for a snapshot", wholeBundle, `{"format": "rdskit bundle", "version": 1, "snapshot": null}`, "the bundle has no snapshot"},
		{"two bundles", wholeBundle, wholeBundle + wholeBundle, "something follows the bundle"},
		{"an end too many", "}}", "}}}", "something follows the bundle"},
		{"null", wholeBundle, "null", "not a bundle of rds-info"},
	} {
		b, err := ReadBundle(strings.NewReader(strings.Replace(wholeBundle, tt.old, tt.new, 1)))
		if err == nil || !strings.Contains(err.Error(), tt.want) || b != nil {
			t.Errorf("%s: %v, error %v, want %q", tt.name, b, err, tt.want)
		}
	}
}
