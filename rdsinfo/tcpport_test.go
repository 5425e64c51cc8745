package rdsinfo

import (
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func writeFiles(t *testing.T, files map[string]string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestTCPIsWhatProcShows(t *testing.T) {
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the text below is of a little-endian machine")
	}
	got := readTCP(writeFiles(t, map[string]string{
		"tcp": `  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100090A:C7BB 0200090A:4001 02 00000001:00000000 01:00000178 00000003     0        0 845 2 000000005938fd38 21 0 0 10 -1
   1: 0100090A:9E2F 0200090A:1F90 01 00000000:00000000 02:00000178 00000000     0        0 843 2 00000000941a8386 21 0 0 10 -1
   2: 0100090A:4001 0200090A:9E2F 01 00000030:00000000 01:00000178 00000001     0        0 843 2 00000000941a8386 21 0 0 10 -1
   3: nonsense
   4: 0100090A:4001 0200090A:9E2F FF 00000030:00000000 01:00000178 00000001
`,
		"tcp6": `  sl  local_address                         remote_address                        st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 00000000000000000000000000000000:4001 00000000000000000000000000000000:0000 0A 00000005:00000000 00:00000000 00000000     0        0 53 1 00000000604b458c 100 0 0 10 0
   1: 000000FD000000000000000001000000:4001 000000FD000000000000000002000000:8000 01 00000000:00000000 00:00000000 00000000     0        0 53 1 00000000604b458c 100 0 0 10 0
   2: 0000000000000000FFFF00000100090A:4001 0000000000000000FFFF00000200090A:8000 08 00000000:00000000 00:00000000 00000000     0        0 53 1 00000000604b458c 100 0 0 10 0
`,
		"snmp": "Ip: Forwarding DefaultTTL\nIp: 1 64\nTcp: RtoAlgorithm ActiveOpens AttemptFails\nTcp: 1 344 72\n",
	}))
	at := netip.MustParseAddrPort
	want := TCP{AttemptsFailed: 72, Endpoints: []TCPEndpoint{
		{Local: at("10.9.0.1:51131"), Remote: at("10.9.0.2:16385"), State: "SYN-SENT", Unacked: 1, Retransmits: 3},
		{Local: at("10.9.0.1:16385"), Remote: at("10.9.0.2:40495"), State: "ESTAB", Unacked: 48, Retransmits: 1},
		{Local: at("[::]:16385"), Remote: at("[::]:0"), State: "LISTEN"},
		{Local: at("[fd00::1]:16385"), Remote: at("[fd00::2]:32768"), State: "ESTAB"},
		{Local: at("10.9.0.1:16385"), Remote: at("10.9.0.2:32768"), State: "CLOSE-WAIT"},
	}}
	if diff := cmp.Diff(want, got, equateAddrs, equateAddrPorts); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if got := readTCP(t.TempDir()); len(got.Endpoints) != 0 || got.AttemptsFailed != 0 {
		t.Errorf("without files: %+v", got)
	}
}

func TestLockedMemory(t *testing.T) {
	dir := writeFiles(t, map[string]string{"limits": "Limit                     Soft Limit           Hard Limit           Units\nMax locked memory         8388608              unlimited            bytes\n"})
	if got := lockedMemory(filepath.Join(dir, "limits")); got != "8388608" {
		t.Errorf("got %q", got)
	}
	if got := lockedMemory(filepath.Join(dir, "none")); got != "" {
		t.Errorf("without a file: %q", got)
	}
}
