package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// goTest runs go test on the package in testdata/sample and returns what it
// prints and its exit status.
func goTest(t *testing.T, env []string, args ...string) (stdout string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "go", append(append([]string{"test", "-count=1"}, args...), "./testdata/sample")...)
	cmd.Env = append(os.Environ(), env...)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("go test %q: %v\n%s", args, errors.Join(err, ctx.Err()), &stderr)
	}
	if stderr.Len() > 0 {
		t.Logf("stderr of go test %q:\n%s", args, &stderr)
	}
	return out.String(), exitStatus(cmd.ProcessState)
}

// execFlag makes go test run its test binaries in the lab.
func execFlag(options ...string) string {
	return "-exec=" + strings.Join(append(append([]string{program, "exec"}, options...), "--"), " ")
}

// What differs from run to run in the output of go test.
var varying = []struct {
	pattern *regexp.Regexp
	text    string
}{
	{regexp.MustCompile(`\d+\.\d+s|\b[0-9]s\b`), "TIME"},
	{regexp.MustCompile(`"Time":"[^"]*"`), `"Time":"NOW"`},
	{regexp.MustCompile(`"Elapsed":[0-9.e-]+`), `"Elapsed":1`},
	{regexp.MustCompile(`(?s)goroutine \d+ .*?(FAIL\t|\z)`), "STACKS $1"},
	{regexp.MustCompile(`goroutine running on other thread.*\n`), ""},
}

func normal(s string) string {
	for _, v := range varying {
		s = v.pattern.ReplaceAllString(s, v.text)
	}
	return s
}

func TestGoTestPrintsTheSameInsideAsOutside(t *testing.T) {
	needProfile(t, kernel.UML)
	for _, test := range []struct {
		name string
		long bool
		env  []string
		args []string
	}{
		{"a package that passes, verbose", true, nil, []string{"-v"}},
		{"a test that fails, as JSON", false, []string{"SAMPLE_FAIL=1"}, []string{"-json"}},
		{"a choice of tests with their coverage", false, nil, []string{"-run", "Positive|Example", "-cover"}},
		{"a test that hangs until its timeout", true, []string{"SAMPLE_HANG=1"}, []string{"-timeout", "500ms", "-run", "Hangs"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long {
				long(t)
			}
			t.Parallel()
			outside, want := goTest(t, test.env, test.args...)
			inside, status := goTest(t, test.env, append(test.args, execFlag())...)
			if status != want {
				t.Errorf("status %d, outside %d", status, want)
			}
			if diff := cmp.Diff(normal(outside), normal(inside)); diff != "" {
				t.Errorf("-outside +inside\n%s", diff)
			}
		})
	}
}

func TestATimeoutShowsWhereTheTestHung(t *testing.T) {
	needProfile(t, kernel.UML)
	out, status := goTest(t, []string{"SAMPLE_HANG=1"}, "-timeout", "500ms", "-run", "Hangs", execFlag())
	if status != 1 || !strings.Contains(out, "panic: test timed out after 500ms") || !strings.Contains(out, "sample.hang(") {
		t.Errorf("status %d, output:\n%s", status, out)
	}
}

func TestGoTestWritesCoverageAndProfiles(t *testing.T) {
	needProfile(t, kernel.UML)
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	_, status := goTest(t, nil, "-run", "Positive", "-bench", ".", "-benchtime", "10x", execFlag(),
		"-coverprofile", file("cover"), "-cpuprofile", file("cpu"), "-memprofile", file("mem"),
		"-mutexprofile", file("mutex"), "-blockprofile", file("block"), "-trace", file("trace"), "-o", file("sample.test"))
	if status != 0 {
		t.Fatalf("status %d", status)
	}
	for _, name := range []string{"cover", "cpu", "mem", "mutex", "block", "trace"} {
		info, err := os.Stat(file(name))
		if err != nil || info.Size() == 0 {
			t.Errorf("profile %s: %v, not written", name, err)
		}
	}
	wantFile(t, file("cover"), strings.ReplaceAll(`mode: set
PKG/sample.go:5.22,6.9 1 1
PKG/sample.go:7.13,8.11 1 1
PKG/sample.go:9.13,10.12 1 1
PKG/sample.go:12.2,12.10 1 0
`, "PKG", "github.com/rdskit/rdskit/cmd/rds-lab/testdata/sample"))
}

func TestABinaryByItselfWritesWhatItsFlagsName(t *testing.T) {
	needProfile(t, kernel.UML)
	dir := t.TempDir()
	binary := buildSample(t, "-cover")
	covdata := filepath.Join(dir, "new", "covdata")
	r := &run{t: t, args: []string{"exec", "--", binary, "-test.run", "Positive", "-test.gocoverdir=" + covdata,
		"-test.memprofile", filepath.Join(dir, "mem"), "-test.cpuprofile=relative"}}
	r.do()
	if r.status != 0 {
		t.Fatalf("status %d: %s%s", r.status, r.stdout, r.stderr)
	}
	for _, pattern := range []string{filepath.Join(covdata, "covmeta.*"), filepath.Join(covdata, "covcounters.*"), filepath.Join(dir, "mem"), filepath.Join(r.dir, "relative")} {
		if files, _ := filepath.Glob(pattern); len(files) != 1 {
			t.Errorf("%d files %s, want 1", len(files), pattern)
		}
	}
}

func buildSample(t *testing.T, flags ...string) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "sample.test")
	cmd := exec.Command("go", append(append([]string{"test", "-c", "-o", binary}, flags...), "./testdata/sample")...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return binary
}

func TestASignalActsAsOutside(t *testing.T) {
	needProfile(t, kernel.UML)
	binary := buildSample(t)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGQUIT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			if sig != syscall.SIGQUIT {
				long(t)
			}
			t.Parallel()
			want, _ := signalled(t, sig, binary, "-test.run=Hangs")
			status, stderr := signalled(t, sig, program, "exec", "--", binary, "-test.run=Hangs")
			if status != want {
				t.Errorf("status %d, outside %d; stderr:\n%s", status, want, stderr)
			}
			if sig == syscall.SIGQUIT && !strings.Contains(stderr, "sample.hang(") {
				t.Errorf("SIGQUIT does not show where the test is:\n%s", stderr)
			}
		})
	}
}

// signalled starts the sample's binary, waits until it hangs, and sends a
// signal.
func signalled(t *testing.T, sig os.Signal, name string, args ...string) (status int, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), "SAMPLE_HANG=1")
	var buf bytes.Buffer
	cmd.Stderr = &buf
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	for s := bufio.NewScanner(stdout); s.Scan(); {
		if s.Text() == "hanging" {
			cmd.Process.Signal(sig)
		}
	}
	cmd.Wait()
	return exitStatus(cmd.ProcessState), buf.String()
}

func TestFuzzingKeepsWhatItFinds(t *testing.T) {
	long(t)
	needProfile(t, kernel.UML)
	out, status := goTest(t, nil, "-run", "^$", "-fuzz", "Sign", "-fuzztime", "50x", execFlag())
	if status != 0 {
		t.Errorf("status %d:\n%s", status, out)
	}
}
