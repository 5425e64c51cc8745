package lab

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// resolveWritable turns paths into the places to write through to: absolute,
// without symbolic links, none inside another. The root is left out, since
// then nothing would be scratch.
func resolveWritable(paths []string) ([]string, error) {
	var places []string
	for _, p := range paths {
		abs, err := filepath.Abs(p)
		if err != nil {
			return nil, err
		}
		real, err := filepath.EvalSymlinks(abs)
		if err != nil {
			return nil, fmt.Errorf("cannot make %s writable in the lab: %w", p, err)
		}
		if guestOwns(real) {
			return nil, fmt.Errorf("cannot make %s writable in the lab: it belongs to the lab's own kernel there", p)
		}
		if real != "/" {
			places = append(places, real)
		}
	}
	slices.Sort(places)
	var outer []string
	for _, p := range places {
		if !slices.ContainsFunc(outer, func(dir string) bool { return inside(p, dir) }) {
			outer = append(outer, p)
		}
	}
	return outer, nil
}

// inside tells whether a clean path is dir or below it.
func inside(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, dir+"/")
}

// guestOwns tells whether the guest mounts something of its own there.
func guestOwns(path string) bool {
	if inside(path, "/dev/shm") && path != "/dev/shm" {
		return false
	}
	return slices.ContainsFunc([]string{"/dev", "/proc", "/sys"}, func(dir string) bool { return inside(path, dir) })
}

// What the flags of a test binary name: see 'go help testflag' and
// cmd/go/internal/test. The binary writes to all of it.
var (
	testDirFlags  = []string{"gocoverdir", "outputdir", "fuzzcachedir"}
	testFileFlags = []string{"coverprofile", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace", "testlogfile"}
)

// TestWritable lists where a test binary writes, given its command line
// as cmd/go builds it, so that a test in the lab leaves what it would
// leave outside: the directory of the binary, which go test made for it, and
// what its flags name. What is not there yet is created.
func TestWritable(args []string, goCoverDir string) ([]string, error) {
	var paths []string
	if len(args) > 0 && strings.HasSuffix(args[0], ".test") && strings.Contains(args[0], "/") {
		paths = append(paths, filepath.Dir(args[0]))
	}
	if goCoverDir != "" {
		paths = append(paths, goCoverDir)
	}
	for i := 1; i < len(args); i++ {
		flag, value, ok := strings.Cut(args[i], "=")
		name, isTest := strings.CutPrefix(strings.TrimLeft(flag, "-"), "test.")
		isDir, isFile := slices.Contains(testDirFlags, name), slices.Contains(testFileFlags, name)
		if !strings.HasPrefix(flag, "-") || !isTest || !isDir && !isFile {
			continue
		}
		if !ok && i+1 < len(args) {
			i++
			value = args[i]
		}
		if !filepath.IsAbs(value) {
			continue // below the working directory, or nothing
		}
		var err error
		if isDir {
			err = os.MkdirAll(value, 0o777)
		} else {
			err = touch(value)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		}
		paths = append(paths, value)
	}
	return paths, nil
}

func touch(name string) error {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.Close()
}
