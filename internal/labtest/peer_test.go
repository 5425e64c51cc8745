package labtest

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

func TestCommandsRunOnThePeer(t *testing.T) {
	peer := Peer(t)
	if name := peer.Run("hostname"); name != peer.machine()+"\n" {
		t.Errorf("it is called %q", name)
	}
	data := bytes.Repeat([]byte{0, 1, 0xfe, 0xff, '\n', '\r', 4}, 100_000)
	cmd := peer.Move(exec.Command("sh", "-c", `echo "$WORD" >&2; cat; exit 7`))
	cmd.Env = append(os.Environ(), "WORD=grüße \xff")
	cmd.Stdin = bytes.NewReader(data)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Run()
	if !bytes.Equal(stdout.Bytes(), data) || stderr.String() != "grüße \xff\n" || cmd.ProcessState.ExitCode() != 7 {
		t.Errorf("%d bytes of %d, stderr %q, status %d", stdout.Len(), len(data), &stderr, cmd.ProcessState.ExitCode())
	}
	if err := peer.Move(exec.Command("no-such-command")).Run(); err == nil || !strings.Contains(err.Error(), "127") {
		t.Errorf("a command that is not there: %v", err)
	}
}

func TestACommandOnThePeerIsInterruptedAndKilled(t *testing.T) {
	peer := Peer(t)
	for _, test := range []struct {
		name   string
		signal os.Signal
		status int
	}{
		{"interrupted", os.Interrupt, 130},
		{"killed", os.Kill, -1},
	} {
		cmd := peer.Move(exec.Command("sh", "-c", "echo begun; exec sleep 1234"))
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		cmd.Process.Signal(test.signal)
		cmd.Wait()
		if got := cmd.ProcessState.ExitCode(); got != test.status {
			t.Errorf("%s: status %d, want %d", test.name, got, test.status)
		}
		for began := time.Now(); ; time.Sleep(100 * time.Millisecond) {
			if left := peer.Run("sh", "-c", "pgrep -x sleep || true"); left == "" {
				break
			} else if time.Since(began) > 10*time.Second {
				t.Fatalf("%s: it still runs there, as process %s", test.name, left)
			}
		}
	}
}

// reach sends a datagram to the peer and tells whether the echo comes.
func reach(t *testing.T, peer *PeerMachine) bool {
	t.Helper()
	return exec.Command("ping", "-c", "1", "-W", "2", peer.IPv4().String()).Run() == nil
}

func TestTheCableIsCutUntilItIsMended(t *testing.T) {
	peer := Peer(t)
	if !reach(t, peer) {
		t.Fatal("the peer is not reached")
	}
	t.Run("cut", func(t *testing.T) {
		peer := Peer(t)
		peer.Cut()
		if reach(t, peer) {
			t.Error("the peer is reached by a cable that is cut")
		}
		if i, err := net.InterfaceByName("roce0"); err != nil || i.Flags&net.FlagRunning == 0 {
			t.Errorf("%+v, %v: the machine sees that the cable is cut", i, err)
		}
		if name := peer.Run("hostname"); name != peer.machine()+"\n" {
			t.Errorf("commands do not run there while it is cut: %q", name)
		}
	})
	if !reach(t, peer) {
		t.Error("the peer is not reached after the end of the test that cut the cable")
	}
}

func TestAPeerThatIsKilledCanBeBooted(t *testing.T) {
	peer := Peer(t)
	running := peer.Move(exec.Command("sleep", "1234"))
	var stderr bytes.Buffer
	running.Stderr = &stderr
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	peer.Run("touch", "/run/before")
	peer.Kill()
	if running.Wait(); running.ProcessState.ExitCode() != 125 || !strings.Contains(stderr.String(), peer.machine()+" was killed") {
		t.Errorf("what ran there: status %d, %q", running.ProcessState.ExitCode(), &stderr)
	}
	if reach(t, peer) {
		t.Error("a dead machine is reached")
	}
	peer.Boot()
	if left := peer.Run("sh", "-c", "ls /run/before 2>/dev/null || echo new"); left != "new\n" {
		t.Errorf("it is the old machine: %q", left)
	}
	if !reach(t, peer) {
		t.Error("the machine that was booted is not reached")
	}
}
