package labtest

import (
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/job"
)

// envScene is set for a run of this test binary by one of its tests, to the
// name of what TestScene is to do.
const envScene = "LABTEST_SCENE"

// scenes are what TestScene does on behalf of other tests.
var scenes = map[string]func(t *testing.T){
	"needs what there is":             func(t *testing.T) { Need(t, present) },
	"needs what there is not":         func(t *testing.T) { Need(t, present, absent) },
	"needs nothing in particular":     func(t *testing.T) { Need(t) },
	"needs five hosts":                func(t *testing.T) { Need(t, Hosts(5)) },
	"needs five hosts and processors": func(t *testing.T) { Need(t, SMP, Hosts(5), absent) },
	"needs RDMA and processors":       func(t *testing.T) { Need(t, RDMA, SMP) },
	"leaks a goroutine":               func(t *testing.T) { go func() { <-make(chan int) }() },
	"leaks a file descriptor":         leakDescriptor,
	"leaks a thread":                  leakThread,
	"fails":                           func(t *testing.T) { t.Error("on purpose") },
}

var (
	present = Feature{name: "present", probe: func() error { return nil }}
	absent  = Feature{name: "absent", probe: func() error { return errors.New("it is not there") }, options: []string{"--profile other"}}
)

func TestScene(t *testing.T) {
	scene := os.Getenv(envScene)
	if scene == "" {
		t.Skip("other tests run it")
	}
	scenes[scene](t)
}

// play runs a scene as a test binary of its own, with variables, and returns
// what it prints and whether it passed.
func play(t *testing.T, scene string, env ...string) (output string, passed bool) {
	t.Helper()
	if scenes[scene] == nil {
		t.Fatalf("no scene %q", scene)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestScene$", "-test.v")
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, job.EnvLab) { // EnvLab begins all variables of the lab
			cmd.Env = append(cmd.Env, kv)
		}
	}
	cmd.Env = append(append(cmd.Env, envScene+"="+scene), env...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), err == nil
}

func TestNeedSkipsOutsideAndFailsWhatIsPromised(t *testing.T) {
	const inLab = job.EnvLab + "=uml"
	for _, test := range []struct {
		name   string
		scene  string
		env    []string
		want   string // PASS, FAIL or SKIP
		reason string
	}{
		{"outside, whatever there is", "needs what there is", nil, "SKIP",
			`needs a kernel with present: run it in the lab, go test -exec "rds-lab exec --"`},
		{"outside, nothing in particular", "needs nothing in particular", nil, "SKIP",
			`needs a kernel with rds: run it in the lab, go test -exec "rds-lab exec --"`},
		{"outside, with the options of all features", "needs five hosts and processors", nil, "SKIP",
			`needs a kernel with smp, hosts=5, absent: run it in the lab, go test -exec "rds-lab exec --profile qemu --smp 2 --hosts 5 --profile other --"`},
		{"outside, each option once", "needs RDMA and processors", nil, "SKIP",
			`needs a kernel with rdma, smp: run it in the lab, go test -exec "rds-lab exec --profile qemu --rdma --smp 2 --"`},
		{"inside, what there is", "needs what there is", []string{inLab}, "PASS", ""},
		{"inside, what is promised and missing", "needs what there is not", []string{inLab, job.EnvPromise + "=rds,absent"}, "FAIL",
			"the lab promises absent and does not have it: it is not there"},
		{"inside, what is not promised", "needs what there is not", []string{inLab, job.EnvPromise + "=rds"}, "SKIP",
			`this lab (uml) has no absent (it is not there): use go test -exec "rds-lab exec --profile other --"`},
		{"inside, hosts that are not promised", "needs five hosts", []string{inLab, job.EnvHosts + "=4"}, "SKIP",
			`this lab (uml) has no hosts=5 (the lab has 4 hosts): use go test -exec "rds-lab exec --hosts 5 --"`},
		{"inside, hosts that are promised and missing", "needs five hosts", []string{inLab, job.EnvHosts + "=5"}, "FAIL",
			"the lab promises hosts=5 and does not have it"},
	} {
		t.Run(test.name, func(t *testing.T) {
			out, passed := play(t, test.scene, test.env...)
			if !strings.Contains(out, "--- "+test.want+": TestScene") || !strings.Contains(out, test.reason) {
				t.Errorf("want %s, %s; got:\n%s", test.want, test.reason, out)
			}
			if passed != (test.want != "FAIL") {
				t.Errorf("passed is %t:\n%s", passed, out)
			}
		})
	}
}

// A lab promises what its command line asked for, and it is there: what all
// other tests take for granted.
func TestTheLabHasWhatItPromises(t *testing.T) {
	Need(t, RDS, TCP, IPv6, Netem, Root, Hosts(2))
	if !regexp.MustCompile(`(?m)^(nodev\s+)?sysfs$`).MatchString(read(t, "/proc/filesystems")) {
		t.Error("no sysfs, by which features are probed")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
