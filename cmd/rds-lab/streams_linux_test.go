package main

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/lab/kernel"
)

// everyByte is each value that a byte can have, and what terminals take as
// more than a byte, without a newline at the end.
func everyByte() string {
	var b strings.Builder
	for c := range 256 {
		b.WriteByte(byte(c))
	}
	b.WriteString("\r\n\n\r\x03\x04\x11\x13\x1a\x1c\x7f\xff\xff\x00")
	return b.String()
}

func TestEveryByteComesThroughUnchanged(t *testing.T) {
	needProfile(t, kernel.UML)
	dir := t.TempDir()
	want := everyByte()
	if err := os.WriteFile(filepath.Join(dir, "bytes"), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, dir: dir, stdin: strings.NewReader(want), args: []string{"run", "--", "sh", "-c", "cat bytes; cat bytes >&2; cat"}}
	r.do().want(0, want+want)
	if r.stderr != want {
		t.Errorf("stderr is %q, want %q", r.stderr, want)
	}
}

func TestTenMegabytesOnEachStream(t *testing.T) {
	needProfile(t, kernel.UML)
	dir := t.TempDir()
	want := strings.Repeat(everyByte(), 10<<20/len(everyByte()))
	if err := os.WriteFile(filepath.Join(dir, "bytes"), []byte(want), 0o644); err != nil {
		t.Fatal(err)
	}
	r := &run{t: t, dir: dir, args: []string{"run", "--", "sh", "-c", "tee /dev/stderr < bytes"}}
	r.do()
	if r.status != 0 || r.stdout != want || r.stderr != want {
		t.Errorf("status %d, %d bytes on stdout and %d on stderr; want 0 and the same %d on both", r.status, len(r.stdout), len(r.stderr), len(want))
	}
}

func TestAMegabyteOfStdin(t *testing.T) {
	long(t) // User-Mode Linux reads them one by one
	needProfile(t, kernel.UML)
	stdin := strings.Repeat(everyByte(), 1<<20/len(everyByte()))
	r := &run{t: t, stdin: strings.NewReader(stdin), args: []string{"run", "--", "cat"}}
	if r.do(); r.status != 0 || r.stdout != stdin {
		t.Errorf("status %d, %d bytes on stdout; want 0 and the %d that were sent", r.status, len(r.stdout), len(stdin))
	}
}

func TestInterleavedLinesStayOnTheirStreams(t *testing.T) {
	long(t)
	var stdout, stderr strings.Builder
	for i := range 300 {
		fmt.Fprintln(&stdout, "out", i)
		fmt.Fprintln(&stderr, "err", i)
	}
	r := script(t, `i=0; while [ $i -lt 300 ]; do echo out $i; echo err $i >&2; i=$((i+1)); done`).want(0, stdout.String())
	if r.stderr != stderr.String() {
		t.Errorf("stderr is %q, want %q", r.stderr, stderr.String())
	}
}

func TestOutputArrivesWhileTheCommandRuns(t *testing.T) {
	needProfile(t, kernel.UML)
	r := &run{t: t, args: []string{"run", "--", "sh", "-c", "echo question; read answer; echo got $answer"}}
	cmd := r.command(t.Context())
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	buf := make([]byte, 100)
	n, err := stdout.Read(buf)
	if string(buf[:n]) != "question\n" {
		t.Errorf("read %q, %v; want the question", buf[:n], err)
	}
	// stdin stays open: the end of the command is the end.
	fmt.Fprintln(stdin, "yes")
	n, err = stdout.Read(buf)
	if string(buf[:n]) != "got yes\n" {
		t.Errorf("read %q, %v; want what was answered", buf[:n], err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

func TestTheEndOfStdinIsSeen(t *testing.T) {
	for name, stdin := range map[string]io.Reader{"null device": nil, "empty": strings.NewReader("")} {
		t.Run(name, func(t *testing.T) {
			long(t)
			needProfile(t, kernel.UML)
			t.Parallel()
			(&run{t: t, stdin: stdin, args: []string{"run", "--", "wc", "-c"}}).do().want(0, "0\n")
		})
	}
}

func TestAWriterWhoseReaderIsGoneEnds(t *testing.T) {
	needProfile(t, kernel.UML)
	r := &run{t: t, args: []string{"run", "--", "yes"}}
	cmd := r.command(t.Context())
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { cmd.Process.Kill() }).Stop()
	if _, err := stdout.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	stdout.Close()
	if err := cmd.Wait(); exitStatus(cmd.ProcessState) != 128+13 {
		t.Errorf("rds-lab ended with %v, want SIGPIPE, as yes outside", err)
	}
}

func TestACommandThatLeavesThingsBehindEnds(t *testing.T) {
	for _, test := range []struct {
		name           string
		long           bool
		script, stdout string
	}{
		{"daemons that hold its output", false, "(sleep 1000; echo late) & (setsid sleep 1000; echo late >&2) & echo done", "done\n"},
		{"closed streams", true, "echo first; exec >&- 2>&- <&-; sleep 0.3; exit 0", "first\n"},
		{"a full scratch file system", false, `dd if=/dev/zero of=/var/fill bs=1M 2>/dev/null && exit 1; echo no room for more > /root/x; echo done`, "done\n"},
		{"a process that ends and one that is orphaned", true, `sh -c "sh -c 'sleep 0.2' &"; echo done`, "done\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.long {
				long(t)
			}
			t.Parallel()
			script(t, test.script).want(0, test.stdout)
		})
	}
}

func TestArgumentsAndEnvironmentArriveAsTheyAre(t *testing.T) {
	needProfile(t, kernel.UML)
	odd := []string{"", " ", "a\nb", `'"\`, "$HOME *", "grüße 日本", "\xff\xfe", "--timeout", "--"}
	r := &run{t: t, args: append([]string{"run", "--", "sh", "-c", `printf '<%s>' "$@" "$ODD" "$RDS_LAB" "$RDS_LAB_OTHER"`, "sh"}, odd...),
		env: []string{"ODD=x\ny=z", "RDS_LAB=outside", "RDS_LAB_OTHER=other"}}
	r.do().want(0, "<"+strings.Join(append(odd, "x\ny=z", "uml", "other"), "><")+">")
}
