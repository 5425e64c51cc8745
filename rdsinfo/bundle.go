package rdsinfo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/internal/module"
	"github.com/rdskit/rdskit/internal/sys"
)

// A Bundle is a Snapshot with what else there is to know about RDS on its host,
// to be kept and looked at elsewhere. What could not be read is absent.
type Bundle struct {
	Host    string `json:"host,omitempty"`           // its name
	Release string `json:"kernel_release,omitempty"` // of the kernel, as in uname -r
	// Snapshot has no tables if there is a SocketError.
	Snapshot *Snapshot `json:"snapshot"`
	// SocketError is why no RDS socket can be made. It is not tried where
	// it could load the rds module: without that, the error is what socket(2) returns then.
	SocketError string `json:"socket_error,omitempty"`
	// Sysctls are those of RDS, and the core ones that bound its buffers, by their
	// path below /proc/sys with dots for slashes. Those that only the initial network
	// namespace has are read there.
	Sysctls map[string]string `json:"sysctls,omitempty"`
	// Modules are those of RDS that are loaded or built in.
	Modules []Module `json:"modules,omitempty"`
	// ModuleRules keep modules of RDS away, one for each at most.
	ModuleRules []ModuleRule `json:"module_rules,omitempty"`
	// AbsentModules are those of RDS that the kernel is known to come without.
	AbsentModules []string `json:"absent_modules,omitempty"`
	// LockedMemory is the limit of memory that a process like this one may lock, in
	// bytes or "unlimited".
	LockedMemory string `json:"locked_memory_limit,omitempty"`

	// Namespace is the network namespace that was looked at, and Others are the others.
	Namespace Namespace   `json:"namespace"`
	Others    []Namespace `json:"other_namespaces,omitempty"`
	// UnseenProcesses may be in further namespaces, which the program may not look into. There may
	// be more of them, if /proc hides some.
	UnseenProcesses int    `json:"unseen_processes,omitempty"`
	Links           []Link `json:"links,omitempty"`
	// Peers are the far ends of the connections whose local address is here.
	Peers []Peer `json:"peers,omitempty"`
	// TCP is what the transport tcp stands on.
	TCP TCP `json:"tcp"`
	// TCPHealth is nil if it was not read: see Config.
	TCPHealth []TCPHealth `json:"tcp_health,omitzero"`
	// RDMAPorts are those of the RDMA devices.
	RDMAPorts []RDMAPort `json:"rdma_ports,omitempty"`
	// RDMAConnections are those of RDS on the devices, and RDMACounters those of the ports.
	RDMAConnections []RDMAConnection `json:"rdma_connections,omitempty"`
	RDMACounters    []RDMACounter    `json:"rdma_counters,omitempty"`
}

// storedBundle is the form of a Bundle in a file.
type storedBundle struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	*Bundle
}

const (
	bundleFormat  = "rdskit bundle"
	bundleVersion = 1
	// maxBundle bounds what ReadBundle takes, in bytes, of which it holds a few times as much in
	// memory. It has room for a million messages.
	maxBundle = 128 << 20
)

// Collect takes all tables, and reads what else goes into a Bundle. It sends
// nothing and loads no module. Its error is about the network namespace of cfg, or
// about the TCPHealth that cfg asks for.
func Collect(ctx context.Context, cfg *Config) (*Bundle, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	b := &Bundle{
		Snapshot:      &Snapshot{Time: time.Now()},
		Release:       readLine("/proc/sys/kernel/osrelease"),
		Modules:       readModules("/sys/module"),
		ModuleRules:   readModuleRules(),
		AbsentModules: readAbsentModules(),
		LockedMemory:  lockedMemory("/proc/self/limits"),
	}
	b.Host, _ = os.Hostname()
	err := sys.InNetNS(cfg.NetNS, func() error {
		b.Sysctls = readSysctls("/proc/sys")
		b.TCP = readTCP("/proc/thread-self/net")
		return nil
	})
	if err != nil {
		return nil, err
	}
	b.readNamespaces(ctx, cfg)
	b.addInitialSysctls()
	b.readSnapshot(cfg)
	b.readNetwork(ctx, cfg)
	b.readRDMA(ctx)
	if cfg.TCPHealth || (module.System{}).Loaded("tcp_diag") {
		if b.TCPHealth, err = ReadTCPHealth(ctx, cfg); err != nil && cfg.TCPHealth {
			return nil, err
		}
	}
	return b, nil
}

// readSnapshot takes the tables, unless making a socket could load the rds module.
func (b *Bundle) readSnapshot(cfg *Config) {
	err := error(syscall.EAFNOSUPPORT)
	if b.Loaded("rds") {
		var s *Snapshot
		if s, err = Read(cfg); err == nil {
			b.Snapshot = s
			return
		}
	}
	b.SocketError = err.Error()
	var errno syscall.Errno
	if errors.As(err, &errno) {
		b.SocketError = errno.Error()
	}
}

// Loaded reports whether a module of RDS is loaded or built in.
func (b *Bundle) Loaded(name string) bool {
	for _, m := range b.Modules {
		if m.Name == name {
			return true
		}
	}
	return false
}

// Write writes the bundle as JSON.
func (b *Bundle) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "\t")
	return e.Encode(storedBundle{bundleFormat, bundleVersion, b})
}

// ReadBundle reads what Write wrote. A bundle of a later version is refused, and one of more than 128 MiB.
func ReadBundle(r io.Reader) (*Bundle, error) { return readBundle(r, maxBundle) }

func readBundle(r io.Reader, max int64) (*Bundle, error) {
	limited := &io.LimitedReader{R: r, N: max + 1}
	stored := storedBundle{Bundle: &Bundle{}}
	d := json.NewDecoder(limited)
	err := d.Decode(&stored)
	follows := error(nil)
	if err == nil {
		_, follows = d.Token()
	}
	switch {
	case limited.N == 0:
		return nil, fmt.Errorf("not a bundle of rds-info: it is longer than %d bytes", max)
	case err != nil:
		return nil, fmt.Errorf("not a bundle of rds-info: %w", err)
	case stored.Format != bundleFormat:
		return nil, fmt.Errorf("not a bundle of rds-info: its format is %q, not %q", stored.Format, bundleFormat)
	case stored.Version != bundleVersion:
		return nil, fmt.Errorf("a bundle of version %d: this program reads version %d", stored.Version, bundleVersion)
	case stored.Snapshot == nil:
		return nil, fmt.Errorf("the bundle has no snapshot")
	case follows != io.EOF:
		return nil, fmt.Errorf("something follows the bundle")
	}
	return stored.Bundle, nil
}

func readLine(file string) string {
	b, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
