package rdsinfo

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// TCPPort is where the transport tcp listens (net/rds/tcp.h:RDS_TCP_PORT).
const TCPPort = 16385

// TCP is what the transport tcp stands on, in one network namespace.
type TCP struct {
	// Endpoints are the TCP sockets with port TCPPort at one end, in any state, the listener
	// included.
	Endpoints []TCPEndpoint `json:"endpoints,omitempty"`
	// AttemptsFailed counts attempts of the namespace to connect, of any program, that were
	// refused or given up.
	AttemptsFailed uint64 `json:"attempts_failed"`
}

// A TCPEndpoint is a TCP socket as /proc/net/tcp has it.
type TCPEndpoint struct {
	Local  netip.AddrPort `json:"local"`
	Remote netip.AddrPort `json:"remote"`
	State  string         `json:"state"` // as ss(8) calls it: ESTAB, SYN-SENT, LISTEN, ...
	// Unacked is how many bytes are sent or queued and not acknowledged, Retransmits how often in
	// a row that was tried in vain.
	Unacked     uint64 `json:"unacked"`
	Retransmits int    `json:"retransmits"`
}

// tcpStates are the names of include/net/tcp_states.h in ss(8), from 1.
var tcpStates = []string{"ESTAB", "SYN-SENT", "SYN-RECV", "FIN-WAIT-1", "FIN-WAIT-2", "TIME-WAIT",
	"UNCONN", "CLOSE-WAIT", "LAST-ACK", "LISTEN", "CLOSING", "NEW-SYN-RECV"}

// tcpStateName returns the name of a state, false if there is none.
func tcpStateName(state uint8) (string, bool) {
	if state == 0 || int(state) > len(tcpStates) {
		return "", false
	}
	return tcpStates[state-1], true
}

func readTCP(dir string) TCP {
	var t TCP
	for _, name := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join(dir, name))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			if e, ok := parseTCPEndpoint(lines.Text()); ok && (e.Local.Port() == TCPPort || e.Remote.Port() == TCPPort) {
				t.Endpoints = append(t.Endpoints, e)
			}
		}
		f.Close()
	}
	if b, err := os.ReadFile(filepath.Join(dir, "snmp")); err == nil {
		t.AttemptsFailed = snmpCounter(string(b), "Tcp:", "AttemptFails")
	}
	return t
}

// parseTCPEndpoint reads a line of /proc/net/tcp (net/ipv4/tcp_ipv4.c:get_tcp4_sock).
func parseTCPEndpoint(line string) (e TCPEndpoint, ok bool) {
	words := strings.Fields(line)
	if len(words) < 7 {
		return e, false
	}
	if e.Local, ok = parseHexAddrPort(words[1]); !ok {
		return e, false
	}
	if e.Remote, ok = parseHexAddrPort(words[2]); !ok {
		return e, false
	}
	state, err := strconv.ParseUint(words[3], 16, 8)
	if err != nil {
		return e, false
	}
	if e.State, ok = tcpStateName(uint8(state)); !ok {
		return e, false
	}
	sent, _, _ := strings.Cut(words[4], ":")
	if e.State != "LISTEN" { // whose queue is another
		e.Unacked, _ = strconv.ParseUint(sent, 16, 64)
	}
	n, _ := strconv.ParseUint(words[6], 16, 31)
	e.Retransmits = int(n)
	return e, true
}

// parseHexAddrPort reads an address in words of the host's byte order, and a port.
func parseHexAddrPort(text string) (netip.AddrPort, bool) {
	a, p, _ := strings.Cut(text, ":")
	b, err := hex.DecodeString(a)
	if err != nil || len(b) != 4 && len(b) != 16 {
		return netip.AddrPort{}, false
	}
	port, err := strconv.ParseUint(p, 16, 16)
	if err != nil {
		return netip.AddrPort{}, false
	}
	for i := 0; i < len(b); i += 4 {
		// "%08X" shows the number; in memory it is in network order.
		binary.NativeEndian.PutUint32(b[i:], binary.BigEndian.Uint32(b[i:]))
	}
	addr, _ := netip.AddrFromSlice(b)
	return netip.AddrPortFrom(addr.Unmap(), uint16(port)), true
}

// snmpCounter finds a counter in the text of /proc/net/snmp, which has a line of names and one of values.
func snmpCounter(text, group, name string) uint64 {
	var names []string
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || words[0] != group {
			continue
		}
		if names == nil {
			names = words
			continue
		}
		for i, n := range names {
			if n == name && i < len(words) {
				v, _ := strconv.ParseUint(words[i], 10, 64)
				return v
			}
		}
	}
	return 0
}
