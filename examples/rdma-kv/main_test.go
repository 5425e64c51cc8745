package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
)

func TestMain(m *testing.M) { labtest.MainOf(m, main) }

func TestValuesOfAllSizesComeBack(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	address := netip.AddrPortFrom(labtest.HCA(t, 1).IPv4(), 5100).String()
	server := labtest.StartOn(t, 0, labtest.Command(t, "serve", address))
	client := func(stdin []byte, args ...string) labtest.Result {
		t.Helper()
		cmd := labtest.Command(t, append([]string{"-from", labtest.HCA(t, 2).IPv4().String()}, args...)...)
		cmd.Stdin = bytes.NewReader(stdin)
		return labtest.StartOn(t, 0, cmd).Finish(t)
	}
	for i, size := range []int{0, 1, inline, inline + 1, 100_000, maxValue} {
		value := make([]byte, size)
		rand.NewChaCha8([32]byte{byte(i)}).Read(value)
		key := fmt.Sprintf("key %d", i)
		if r := client(value, "put", address, key); r.Status != 0 {
			t.Fatalf("put of %d bytes: %s", size, r.Stderr)
		}
		if r := client(nil, "get", address, key); r.Status != 0 || r.Stdout != string(value) {
			t.Errorf("get of %d bytes brought %d: %s", size, len(r.Stdout), r.Stderr)
		}
	}
	if r := client(nil, "get", address, "nothing"); r.Status != 1 || !strings.Contains(r.Stderr, "no such key") {
		t.Errorf("get of nothing: %d, %s", r.Status, r.Stderr)
	}
	if r := client(make([]byte, maxValue+1), "put", address, "much"); r.Status != 1 || !strings.Contains(r.Stderr, "1048576") {
		t.Errorf("put of too much: %d, %s", r.Status, r.Stderr)
	}
	if err := server.Process.Signal(os.Interrupt); err != nil {
		t.Error(err)
	}
	if r := server.Finish(t); r.Status != 0 || r.Stderr != "" {
		t.Errorf("the server ended with %d: %s", r.Status, r.Stderr)
	}
}
