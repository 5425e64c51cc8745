package labtest

import (
	"os/exec"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/netem"
)

// A Machine is one host of the lab, in the hands of one test. Its embedded
// Host has the name, the addresses and the path of the network namespace.
type Machine struct {
	hosts.Host
	t testing.TB
}

// Host is the lab's n-th host, counted from 1. The test needs at least n hosts
// then, as with [Hosts].
func Host(t testing.TB, n int) *Machine {
	t.Helper()
	Need(t, Hosts(n))
	return &Machine{hosts.Host{N: n}, t}
}

// HCA is the n-th RDMA host of a lab of one machine, 1 or 2: an address of the soft RoCE
// device in the initial network namespace, where the test runs. The test needs [RDMA]
// then.
func HCA(t testing.TB, n int) hosts.HCA {
	t.Helper()
	Need(t, RDMA)
	if n < 1 || n > hosts.NumHCAs {
		t.Fatalf("no RDMA host %d: there are %d", n, hosts.NumHCAs)
	}
	return hosts.HCA{N: n}
}

// Netem disturbs what the host sends until the end of the test, in the words
// of tc-netem(8): "loss 5% delay 10ms". An empty string ends it now.
func (m *Machine) Netem(spec string) {
	m.t.Helper()
	if spec == "" {
		if err := m.ClearNetem(); err != nil {
			m.t.Fatal(err)
		}
		return
	}
	s, err := netem.Parse(spec)
	if err != nil {
		m.t.Fatalf("netem %q: %v", spec, err)
	}
	if err := m.SetNetem(s); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if err := m.ClearNetem(); err != nil {
			m.t.Error(err)
		}
	})
}

// Cut cuts the host off, until the end of the test or [Machine.Mend].
func (m *Machine) Cut() {
	m.t.Helper()
	if err := m.SetLink(false); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(m.Mend)
}

// Mend ends what [Machine.Cut] began.
func (m *Machine) Mend() {
	m.t.Helper()
	if err := m.SetLink(true); err != nil {
		m.t.Fatal(err)
	}
}

// Move moves the host's IPv4 address to another host until the end of the test, which is made known
// by gratuitous ARP.
func (m *Machine) Move(to *Machine) {
	m.t.Helper()
	m.change(m.SetAway(to.Host, true), func() error { return m.SetAway(to.Host, false) })
}

// Drop drops what comes for a TCP port of the host until the end of the
// test.
func (m *Machine) Drop(port uint16) {
	m.t.Helper()
	m.change(m.SetDrop(port, true), func() error { return m.SetDrop(port, false) })
}

// Deafen makes the host refuse connections to rds_tcp, as if it had none, until the
// end of the test.
func (m *Machine) Deafen() {
	m.t.Helper()
	m.change(m.SetDeaf(true), func() error { return m.SetDeaf(false) })
}

// change fails the test if err, and undoes the change at its end.
func (m *Machine) change(err error, undo func() error) {
	m.t.Helper()
	if err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		if err := undo(); err != nil {
			m.t.Error(err)
		}
	})
}

// Start starts a program on the host.
func (m *Machine) Start(cmd *exec.Cmd) error { return m.Do(cmd.Start) }
