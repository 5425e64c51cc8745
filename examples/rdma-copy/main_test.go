package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
)

func TestMain(m *testing.M) { labtest.MainOf(m, main) }

func TestAFileIsCopied(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	dir := t.TempDir()
	for i, size := range []int{0, 1, 1 << 20, window, 2*window + 12345} {
		t.Run(fmt.Sprintf("%d bytes", size), func(t *testing.T) {
			contents := make([]byte, size)
			rand.NewChaCha8([32]byte{byte(i)}).Read(contents)
			file, copied := filepath.Join(dir, "file"), filepath.Join(dir, "copy")
			if err := os.WriteFile(file, contents, 0o600); err != nil {
				t.Fatal(err)
			}
			address := netip.AddrPortFrom(labtest.HCA(t, 1).IPv4(), uint16(5000+i)).String()
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
