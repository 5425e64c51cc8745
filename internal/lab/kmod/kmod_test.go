package kmod

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
)

func tree(t *testing.T) *Tree {
	t.Helper()
	tree, err := Open(fstest.MapFS{
		"modules.dep": {Data: []byte(`# a comment
kernel/net/rds/rds.ko.xz:
kernel/net/rds/rds_tcp.ko.xz: kernel/net/rds/rds.ko.xz kernel/net/ipv6/ipv6.ko.xz kernel/lib/crc-ccitt.ko.xz
kernel/net/ipv6/ipv6.ko.xz: kernel/lib/crc-ccitt.ko.xz
kernel/lib/crc-ccitt.ko.xz:
`)},
		"modules.builtin": {Data: []byte("kernel/fs/overlayfs/overlay.ko\n")},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func TestLoadListsEachFileOnceAfterWhatItNeeds(t *testing.T) {
	got, err := tree(t).Load("rds_tcp", "overlay", "ipv6", "crc-ccitt")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"kernel/lib/crc-ccitt.ko.xz", "kernel/net/ipv6/ipv6.ko.xz", "kernel/net/rds/rds.ko.xz", "kernel/net/rds/rds_tcp.ko.xz"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, err := tree(t).Load("rds", "nosuch"); err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("error %v, want one that names the module", err)
	}
}

func TestHasTakesDashesForUnderscores(t *testing.T) {
	for name, want := range map[string]bool{"rds_tcp": true, "rds-tcp": true, "crc_ccitt": true, "overlay": true, "rds.ko": true, "rd": false, "": false} {
		if got := tree(t).Has(name); got != want {
			t.Errorf("Has(%q) is %t", name, got)
		}
	}
}

func TestAnIndexThatIsNoneIsRefused(t *testing.T) {
	if _, err := Open(fstest.MapFS{"modules.dep": {Data: []byte("a.ko:\nnonsense\n")}}); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("error %v, want one that names the line", err)
	}
	if _, err := Open(fstest.MapFS{}); !os.IsNotExist(err) {
		t.Errorf("error %v, want that there is none", err)
	}
}

func TestModulesAreReadInEveryCompression(t *testing.T) {
	want := bytes.Repeat([]byte("a module "), 1000)
	dir := t.TempDir()
	var gz, x, zst bytes.Buffer
	g := gzip.NewWriter(&gz)
	g.Write(want)
	g.Close()
	xw, err := xz.NewWriter(&x)
	if err != nil {
		t.Fatal(err)
	}
	xw.Write(want)
	xw.Close()
	zw, err := zstd.NewWriter(&zst)
	if err != nil {
		t.Fatal(err)
	}
	zw.Write(want)
	zw.Close()
	for name, data := range map[string][]byte{"m.ko": want, "m.ko.gz": gz.Bytes(), "m.ko.xz": x.Bytes(), "m.ko.zst": zst.Bytes()} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := ReadModule(file); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes, %v", name, len(got), err)
		}
		if name == "m.ko" {
			continue
		}
		for _, bad := range [][]byte{nil, []byte("not compressed"), data[:len(data)/2]} {
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			if _, err := ReadModule(file); err == nil || !strings.Contains(err.Error(), file) {
				t.Errorf("%s with %d bad bytes: error %v, want one that names the file", name, len(bad), err)
			}
		}
	}
}

func TestModulesAreUncompressedWithWhatTheyNeed(t *testing.T) {
	dir := t.TempDir()
	var z bytes.Buffer
	g := gzip.NewWriter(&z)
	g.Write([]byte("a module"))
	g.Close()
	for name, text := range map[string]string{"a.ko.gz": z.String(), "b.ko.gz": z.String(), "c.ko.gz": z.String(), "modules.dep": "a.ko.gz: b.ko.gz\nb.ko.gz:\nc.ko.gz:\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tree, err := Open(os.DirFS(dir))
	if err != nil {
		t.Fatal(err)
	}
	if changed, err := tree.Uncompress(dir, "a"); !changed || err != nil {
		t.Errorf("changed is %t, %v", changed, err)
	}
	var names []string
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if diff := cmp.Diff([]string{"a.ko", "b.ko", "c.ko.gz", "modules.dep"}, names); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestTheClosureListsNearestFirst(t *testing.T) {
	needs := map[string][]string{"a.ko": {"b", "c", "built_in"}, "b.ko": {"d"}, "c.ko": {"d"}, "d.ko": nil}
	paths := map[string]string{"a": "a.ko", "b": "b.ko", "c": "c.ko", "d": "d.ko"}
	if diff := cmp.Diff([]string{"c.ko", "b.ko", "d.ko"}, closure("a.ko", needs, paths)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	// A circle, which no kernel has, is no endless loop.
	needs["d.ko"] = []string{"a"}
	closure("a.ko", needs, paths)
}
