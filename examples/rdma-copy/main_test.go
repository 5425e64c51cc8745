package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

func TestMain(m *testing.M) { labtest.MainOf(m, main) }

func TestAFileIsCopied(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	sizes := []int{0, 1, 1 << 20, window + 12345}
	if !testing.Short() {
		sizes = append(sizes, window, 2*window)
	}
	copyFiles(t, 5000, sizes)
}

// A connection that breaks ends all operations on it, which the program begins anew.
func TestAFileIsCopiedAlthoughTheConnectionBreaks(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	done := make(chan struct{})
	broken := make(chan int)
	go func() { broken <- breakConnections(t, done) }()
	copyFiles(t, 5100, []int{window + 12345})
	close(done)
	if n := <-broken; n == 0 {
		t.Error("no connection was broken")
	}
}

// breakConnections breaks the connection between the hosts again and again until
// done, with a key that nobody gave, and returns how often.
func breakConnections(t *testing.T, done <-chan struct{}) (n int) {
	region, err := rdma.Allocate(4096)
	if err != nil {
		t.Error(err)
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	defer region.Close(ctx)
	address := netip.AddrPortFrom(labtest.HCA(t, 2).IPv4(), 0)
	sock, err := rdssock.Listen(address, &rdssock.Config{Transport: rdssock.TransportInfiniBand})
	if err != nil {
		t.Error(err)
		return 0
	}
	conn, err := rdma.New(sock, nil)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	op := rdma.Operation{Peer: netip.AddrPortFrom(labtest.HCA(t, 1).IPv4(), 5099), Key: 0x5500, Local: []rdma.Slice{region.All()}, Silent: true}
	for n < 3 {
		select {
		case <-done:
			return n
		case <-time.After(500 * time.Millisecond):
		}
		if err := conn.StartRead(ctx, &op); err != nil {
			t.Error(err)
			return n
		}
		err := op.Wait(ctx)
		if !errors.Is(err, rdma.ErrRemoteAccess) && !errors.Is(err, rdma.ErrDropped) && !errors.Is(err, rdma.ErrFailed) {
			t.Errorf("a wrong key: %v", err)
			return n
		}
		n++
	}
	return n
}

// A copying is a file on one host that is copied to the other.
type copying struct {
	t            *testing.T
	address      string
	file, copied string
	contents     []byte
}

func newCopying(t *testing.T, port, size int) *copying {
	t.Helper()
	dir := t.TempDir()
	c := &copying{
		t: t, address: netip.AddrPortFrom(labtest.HCA(t, 1).IPv4(), uint16(port)).String(),
		file: filepath.Join(dir, "file"), copied: filepath.Join(dir, "copy"), contents: make([]byte, size),
	}
	rand.NewChaCha8([32]byte{byte(port)}).Read(c.contents)
	if err := os.WriteFile(c.file, c.contents, 0o600); err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *copying) serve() *labtest.Process {
	c.t.Helper()
	return labtest.StartOn(c.t, 0, labtest.Command(c.t, "serve", c.address, c.file))
}

// stop ends the server and sees that it served well.
func (c *copying) stop(server *labtest.Process) {
	c.t.Helper()
	if err := server.Process.Signal(os.Interrupt); err != nil {
		c.t.Error(err)
	}
	if r := server.Finish(c.t); r.Status != 0 || r.Stderr != "" {
		c.t.Errorf("the server ended with %d: %s", r.Status, r.Stderr)
	}
}

func (c *copying) client(copied string) *exec.Cmd {
	c.t.Helper()
	return labtest.Command(c.t, "-from", labtest.HCA(c.t, 2).IPv4().String(), "fetch", c.address, copied)
}

// check sees that a client made a good copy.
func (c *copying) check(r labtest.Result, copied string) {
	c.t.Helper()
	if r.Status != 0 {
		c.t.Fatalf("the client ended with %d: %s", r.Status, r.Stderr)
	}
	if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(c.contents), copied); r.Stdout != want {
		c.t.Errorf("it printed %q, want %q", r.Stdout, want)
	}
	size := len(c.contents)
	if size > 0 && !strings.Contains(r.Stderr, fmt.Sprintf("100%% of %d bytes", size)) {
		c.t.Errorf("no progress in %q", r.Stderr)
	}
	got, err := os.ReadFile(copied)
	if err != nil || !bytes.Equal(got, c.contents) {
		c.t.Errorf("the copy has %d bytes, and is another; %v", len(got), err)
	}
}

// copyFiles copies a file of each size.
func copyFiles(t *testing.T, port int, sizes []int) {
	t.Helper()
	for i, size := range sizes {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			c := newCopying(t, port+i, size)
			server := c.serve()
			r := labtest.StartOn(t, 0, c.client(c.copied)).Finish(t)
			c.stop(server)
			c.check(r, c.copied)
		})
	}
}

func TestACopyThatFailsLeavesTheOldOne(t *testing.T) {
	labtest.Need(t, labtest.RDMA, labtest.Root)
	c := newCopying(t, 5200, 2<<20)
	server := c.serve()
	full := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m", "none", full).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	t.Cleanup(func() { exec.Command("umount", full).Run() })
	copied := filepath.Join(full, "copy")
	if err := os.WriteFile(copied, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := labtest.StartOn(t, 0, c.client(copied)).Finish(t)
	if r.Status != 1 || !strings.Contains(r.Stderr, "no space left on device") || r.Stdout != "" {
		t.Errorf("the client ended with %d: %q, %s", r.Status, r.Stdout, r.Stderr)
	}
	old, err := os.ReadFile(copied)
	files, _ := os.ReadDir(full)
	if err != nil || string(old) != "old" || len(files) != 1 {
		t.Errorf("left are %v, %q, %v", files, old, err)
	}
	// The server goes on, whatever comes.
	peer, err := rdssock.Listen(netip.AddrPortFrom(labtest.HCA(t, 2).IPv4(), 0), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer peer.Close()
	for _, garbage := range [][]byte{nil, make([]byte, 100_000), []byte("null"), []byte(`{"Offset": -1}`), []byte(`{"Offset": 1e18}`), []byte(`{"Offset": "`), []byte(`{"Done": true}`)} {
		if _, err := peer.WriteToAddrPort(garbage, netip.MustParseAddrPort(c.address)); err != nil {
			t.Fatal(err)
		}
	}
	r = labtest.StartOn(t, 0, c.client(c.copied)).Finish(t)
	c.stop(server)
	c.check(r, c.copied)
}

func TestWhatCannotBeCopiedSaysWhy(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	c := newCopying(t, 5300, 1)
	dir := filepath.Dir(c.file)
	for name, test := range map[string]struct {
		args   []string
		status int
		want   string
	}{
		"nothing":                     {nil, 2, "usage:"},
		"neither serve nor fetch":     {[]string{"give", c.address, c.file}, 2, "usage:"},
		"too much":                    {[]string{"serve", c.address, c.file, c.file}, 2, "usage:"},
		"an own address that is none": {[]string{"-from", "here", "fetch", c.address, c.copied}, 2, `"here" for flag -from`},
		"no port":                     {[]string{"serve", "10.8.0.1", c.file}, 1, `"10.8.0.1" is no address and port: want one such as 10.8.0.1:4000`},
		"port 0":                      {[]string{"serve", "10.8.0.1:0", c.file}, 1, `"10.8.0.1:0" is no address and port`},
		"a file that is not there":    {[]string{"serve", c.address, c.copied}, 1, c.copied + ": no such file or directory"},
		"a directory":                 {[]string{"serve", c.address, dir}, 1, dir + " is no regular file"},
		"a copy to a directory":       {[]string{"fetch", c.address, dir}, 1, dir + " is no regular file"},
		"a copy to nowhere":           {[]string{"fetch", c.address, dir + "/x/y"}, 1, dir + "/x/y.part: no such file or directory"},
		"another host's address":      {[]string{"serve", "10.8.0.77:5300", c.file}, 1, "10.8.0.77 is not an address of this host"},
		"an address without RDMA":     {[]string{"serve", "127.0.0.1:5300", c.file}, 1, "transport infiniband does not serve 127.0.0.1"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := labtest.RunOn(t, 0, test.args...); r.Status != test.status || !strings.Contains(r.Stderr, test.want) || r.Stdout != "" {
				t.Errorf("%d, %q, %s; want %d, %s", r.Status, r.Stdout, r.Stderr, test.status, test.want)
			}
		})
	}
}

// A server that is started anew has other keys, and clients take turns.
func TestTwoClientsAndAServerThatIsStartedAnew(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	c := newCopying(t, 5400, 3*window+5)
	server := c.serve()
	copies := []string{c.copied, c.copied + "2"}
	var clients []*labtest.Process
	for _, name := range copies {
		clients = append(clients, labtest.StartOn(t, 0, c.client(name)))
	}
	for part := int64(0); part < window; time.Sleep(10 * time.Millisecond) {
		for _, name := range copies {
			if info, err := os.Stat(name + ".part"); err == nil {
				part = max(part, info.Size())
			}
		}
	}
	if err := server.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = server.Wait()
	server = c.serve()
	for i, client := range clients {
		c.check(client.Finish(t), copies[i])
	}
	c.stop(server)
}
