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

// breakConnections breaks the connection between the hosts again and again until done, with a
// key that nobody gave, and returns how often.
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

// copyFiles copies a file of each size.
func copyFiles(t *testing.T, port int, sizes []int) {
	t.Helper()
	dir := t.TempDir()
	for i, size := range sizes {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			contents := make([]byte, size)
			rand.NewChaCha8([32]byte{byte(i)}).Read(contents)
			file, copied := filepath.Join(dir, "file"), filepath.Join(dir, "copy")
			if err := os.WriteFile(file, contents, 0o600); err != nil {
				t.Fatal(err)
			}
			address := netip.AddrPortFrom(labtest.HCA(t, 1).IPv4(), uint16(port+i)).String()
			server := labtest.StartOn(t, 0, labtest.Command(t, "serve", address, file))
			client := labtest.RunOn(t, 0, "-from", labtest.HCA(t, 2).IPv4().String(), "fetch", address, copied)
			if err := server.Process.Signal(os.Interrupt); err != nil {
				t.Error(err)
			}
			if r := server.Finish(t); r.Status != 0 {
				t.Errorf("the server ended with %d: %s", r.Status, r.Stderr)
			}
			if client.Status != 0 {
				t.Fatalf("the client ended with %d: %s", client.Status, client.Stderr)
			}
			if want := fmt.Sprintf("%x  %s\n", sha256.Sum256(contents), copied); client.Stdout != want {
				t.Errorf("it printed %q, want %q", client.Stdout, want)
			}
			if size > 0 && !strings.Contains(client.Stderr, fmt.Sprintf("100%% of %d bytes", size)) {
				t.Errorf("no progress in %q", client.Stderr)
			}
			got, err := os.ReadFile(copied)
			if err != nil || !bytes.Equal(got, contents) {
				t.Errorf("the copy has %d bytes, and is another; %v", len(got), err)
			}
		})
	}
}
