// Package labtest is for tests that need a kernel with RDS. Such a test says what
// it needs, and runs in the lab:
//
//	go test -exec "rds-lab exec --" ./rdssock/
//
// Outside the lab it is skipped. Inside, a feature that the lab promises and does
// not have fails it.
package labtest

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
)

// A Feature is something that a test needs and not every kernel has.
type Feature struct {
	name  string
	probe func() error
	// options are those of rds-lab exec that give a lab which has it.
	options []string
}

func (f Feature) String() string { return f.name }

// The features.
var (
	// RDS is the rds module: sockets and the loop transport.
	RDS = Feature{name: "rds", probe: module("rds")}
	// TCP is the transport of the rds_tcp module.
	TCP = Feature{name: "tcp", probe: module("rds_tcp")}
	// IPv6 is IPv6, as RDS takes it.
	IPv6 = Feature{name: "ipv6", probe: exists("/proc/net/if_inet6")}
	// Netem is the queueing discipline behind [Machine.Netem].
	Netem = Feature{name: "netem", probe: module("sch_netem")}
	// Root is the right to do everything.
	Root = Feature{name: "root", probe: root}
	// SMP is a second processor: threads of the kernel really run side by
	// side.
	SMP = Feature{name: "smp", probe: processors(2), options: []string{qemu, "--smp 2"}}
	// RDMA is the transport of the rds_rdma module, with a soft RoCE device: see [HCA].
	RDMA = Feature{name: "rdma", probe: rdma, options: []string{qemu, "--rdma"}}
	// Machines are two machines, each an RDMA host: see [Peer].
	Machines = Feature{name: "machines", probe: machines, options: []string{qemu, "--machines 2"}}
)

const qemu = "--profile qemu"

// Hosts are at least n hosts: see [Host].
func Hosts(n int) Feature {
	return Feature{"hosts=" + strconv.Itoa(n), func() error {
		if have := promisedHosts(); have < n {
			return fmt.Errorf("the lab has %d hosts", have)
		}
		for _, h := range hosts.All(n) {
			if err := exists(h.NetNS())(); err != nil {
				return err
			}
		}
		return nil
	}, []string{fmt.Sprintf("--hosts %d", n)}}
}

// Lab tells the profile of the lab that the test runs in; it is empty outside.
func Lab() string { return os.Getenv(job.EnvLab) }

// Need skips the test outside the lab. Inside, it fails the test if the lab
// lacks a feature that it promises, and skips it if the lab is one
// without the feature. No features at all are [RDS].
func Need(t testing.TB, features ...Feature) {
	t.Helper()
	if len(features) == 0 {
		features = []Feature{RDS}
	}
	if Lab() == "" {
		tally.add(t, false)
		t.Skipf("needs a kernel with %s: run it in the lab, go test -exec %q", join(features), remedy(features))
	}
	for _, f := range features {
		err := f.probe()
		switch {
		case err == nil:
		case promises(f):
			t.Fatalf("the lab promises %s and does not have it: %v", f, err)
		default:
			tally.add(t, false)
			t.Skipf("this lab (%s) has no %s (%v): use go test -exec %q", Lab(), f, err, remedy(features))
		}
	}
	tally.add(t, true)
}

func join(features []Feature) string {
	names := make([]string, len(features))
	for i, f := range features {
		names[i] = f.name
	}
	return strings.Join(names, ", ")
}

// remedy is the command that gives a lab with all the features.
func remedy(features []Feature) string {
	words := []string{"rds-lab exec"}
	for _, f := range features {
		for _, option := range f.options {
			if !slices.Contains(words, option) {
				words = append(words, option)
			}
		}
	}
	return strings.Join(append(words, "--"), " ")
}

// promises tells whether the lab says that it has the feature.
func promises(f Feature) bool {
	if n, ok := strings.CutPrefix(f.name, "hosts="); ok {
		want, err := strconv.Atoi(n)
		return err == nil && want <= promisedHosts()
	}
	return slices.Contains(strings.Split(os.Getenv(job.EnvPromise), ","), f.name)
}

func promisedHosts() int {
	n, err := strconv.Atoi(os.Getenv(job.EnvHosts))
	if err != nil {
		return 0
	}
	return n
}

// module probes for a module that is loaded or built in. A look at /sys loads
// nothing, as a call of socket(2) might.
func module(name string) func() error { return exists("/sys/module/" + name) }

func exists(path string) func() error {
	return func() error {
		_, err := os.Stat(path)
		return err
	}
}

func root() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("the user is %d", uid)
	}
	return nil
}

func processors(n int) func() error {
	return func() error {
		if have := runtime.NumCPU(); have < n {
			return fmt.Errorf("it has %d processors", have)
		}
		return nil
	}
}

// rdma probes for the transport and its device, which has the addresses of both hosts.
func rdma() error {
	if os.Getenv(job.EnvMachine) != "" {
		return errors.New("it has two machines, and a host on each")
	}
	return adapter()
}

func machines() error {
	if err := exists(job.CallSocket)(); err != nil {
		return err
	}
	return adapter()
}

func adapter() error {
	if err := module("rds_rdma")(); err != nil {
		return err
	}
	return exists("/sys/class/infiniband/" + hosts.HCADevice)()
}

// counts counts the tests that need the lab, by name, for [Main].
type counts struct {
	mu    sync.Mutex
	tests map[string]bool // whether it ran
}

var tally = &counts{tests: map[string]bool{}}

func (c *counts) add(t testing.TB, ran bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tests[t.Name()] = ran
}

// result tells how many tests ran and how many were skipped.
func (c *counts) result() (ran, skipped int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.tests {
		if r {
			ran++
		} else {
			skipped++
		}
	}
	return ran, skipped
}
