package cpio

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"testing"
)

func archive(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b)
	w.Dir("dev", 0o755)
	w.CharDevice("dev/console", 0o600, 5, 1)
	w.File("init", 0o755, []byte("12345"))
	w.Symlink("link", "init")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnArchiveIsNewc(t *testing.T) {
	const header = "070701" + "00000003" + "000081ed" + "00000000" + "00000000" + "00000001" + "00000000" + "00000005" +
		"00000000" + "00000000" + "00000000" + "00000000" + "00000005" + "00000000" + "init\x00\x00" + "12345\x00\x00\x00"
	b := archive(t)
	if !bytes.Contains(b, []byte(header)) {
		t.Errorf("no file as it has to be in %q", b)
	}
	if len(b)%4 != 0 || !bytes.Contains(b, []byte(trailer)) {
		t.Errorf("%d bytes, which do not end as they have to: %q", len(b), b[max(0, len(b)-100):])
	}
}

func TestTheProgramCpioListsIt(t *testing.T) {
	path, err := exec.LookPath("cpio")
	if err != nil {
		t.Skipf("%v: install it to run this test", err)
	}
	cmd := exec.Command(path, "--list", "--verbose", "--numeric-uid-gid")
	cmd.Stdin = bytes.NewReader(archive(t))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"drwxr-xr-x", "crw-------", "5,   1", "link -> init"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

type fullDisk struct{}

var errFull = errors.New("full")

func (fullDisk) Write([]byte) (int, error) { return 0, errFull }

func TestErrorsStick(t *testing.T) {
	w := NewWriter(fullDisk{})
	w.Dir("dev", 0o755)
	if err := w.Close(); !errors.Is(err, errFull) {
		t.Errorf("error %v, want the first one", err)
	}
}
