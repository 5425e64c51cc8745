package labtest

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/job"
)

func leakDescriptor(t *testing.T) {
	f, err := os.Open(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	leaked = f
}

var leaked *os.File

// leakThread leaves a thread in the network namespace of a host.
func leakThread(t *testing.T) {
	h := Host(t, 1)
	errc := make(chan error)
	go func() {
		runtime.LockOSThread()
		errc <- h.Enter()
		runtime.UnlockOSThread() // others are going to run there
	}()
	if err := <-errc; err != nil {
		t.Fatal(err)
	}
}

func TestMainFindsWhatTestsLeaveBehind(t *testing.T) {
	for scene, want := range map[string]string{
		"leaks a goroutine":       "labtest.init.func",
		"leaks a file descriptor": "file descriptor ",
	} {
		t.Run(scene, func(t *testing.T) {
			out, passed := play(t, scene)
			if passed || !strings.Contains(out, "--- PASS: TestScene") || !strings.Contains(out, "FAIL: the tests left something behind:") || !strings.Contains(out, want) {
				t.Errorf("passed is %t, want a report with %q:\n%s", passed, want, out)
			}
		})
	}
}

func TestMainFindsThreadsInForeignNamespaces(t *testing.T) {
	Need(t, Root, Hosts(1))
	out, passed := play(t, "leaks a thread", job.EnvLab+"="+Lab(), job.EnvHosts+"=1")
	if passed || !strings.Contains(out, "is in network namespace") {
		t.Errorf("passed is %t:\n%s", passed, out)
	}
}

func TestMainPrintsAndKeepsATally(t *testing.T) {
	tally := filepath.Join(t.TempDir(), "tally")
	for _, test := range []struct {
		scene string
		env   []string
		line  string // of the report; none if empty
		lab   string
		kept  string
	}{
		{"needs what there is", nil, "labtest: 0 tests ran in the lab (-), 1 were skipped", "-", "0 1"},
		{"needs what there is", []string{job.EnvLab + "=uml"}, "labtest: 1 tests ran in the lab (uml), 0 were skipped", "uml", "1 0"},
		{"fails", []string{job.EnvLab + "=uml"}, "", "uml", "0 0"},
	} {
		t.Run(test.scene, func(t *testing.T) {
			out, _ := play(t, test.scene, append(test.env, EnvTally+"="+tally)...)
			if test.line == "" && strings.Contains(out, "labtest: ") || !strings.Contains(out, test.line) {
				t.Errorf("want %q in\n%s", test.line, out)
			}
			want := filepath.Base(os.Args[0]) + " " + test.lab + " " + test.kept + "\n"
			if lines := read(t, tally); !strings.HasSuffix(lines, want) {
				t.Errorf("the tally is %q, want %q at its end", lines, want)
			}
		})
	}
}
