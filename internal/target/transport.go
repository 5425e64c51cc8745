package target

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"syscall"

	"github.com/rdskit/rdskit/internal/diagnose"
	"github.com/rdskit/rdskit/rdssock"
)

// CheckModule returns an error if opening a socket would load the rds module unasked, or fail
// for want of it.
func (f *Finder) CheckModule() error {
	if f.Load || f.Modules.Loaded("rds") {
		return nil
	}
	return f.moduleMissing("; or let --load do it where the kernel can")
}

// moduleMissing says why the rds module is not there. hint is a further way to get it.
func (f *Finder) moduleMissing(hint string) error {
	err := fmt.Errorf("%w%s", rdssock.ErrModuleMissing, diagnose.Find(f.Modules, "rds").Explain(hint))
	return &Error{"unable to create RDS socket", syscall.EAFNOSUPPORT, err}
}

// findTransport opens a socket at the target's source to see what carries its messages.
func (f *Finder) findTransport(t *Target) error {
	c, err := f.open(t, rdssock.TransportAny)
	if f.Load && errors.Is(err, rdssock.ErrNoTransport) {
		for _, tr := range candidates() {
			if c, lerr := f.open(t, tr); lerr == nil {
				// The module stays: from now on binding finds it.
				c.Close()
				break
			}
		}
		c, err = f.open(t, rdssock.TransportAny)
	}
	if err != nil {
		return f.explainOpen(t, err)
	}
	t.Transport = c.Transport()
	return c.Close()
}

func (f *Finder) open(t *Target, tr rdssock.Transport) (*rdssock.Conn, error) {
	return rdssock.Listen(netip.AddrPortFrom(t.Source, 0), &rdssock.Config{NetNS: f.NetNS, Transport: tr})
}

// candidates are the transports to load, that of the RDMA devices first if there are any.
func candidates() []rdssock.Transport {
	if hasRDMA() {
		return []rdssock.Transport{rdssock.TransportInfiniBand, rdssock.TransportTCP}
	}
	return []rdssock.Transport{rdssock.TransportTCP}
}

func hasRDMA() bool {
	devices, err := os.ReadDir("/sys/class/infiniband")
	return err == nil && len(devices) > 0
}

// explainOpen says what is missing when a socket cannot be opened.
func (f *Finder) explainOpen(t *Target, err error) error {
	switch {
	case errors.Is(err, rdssock.ErrModuleMissing):
		return f.moduleMissing("; this kernel does not load it by itself")
	case errors.Is(err, rdssock.ErrNoTransport):
		return &Error{"bind() failed", syscall.EADDRNOTAVAIL, f.noTransport(t)}
	}
	return newError("bind() failed", err)
}

// noTransport says which module would serve the target's source.
func (f *Finder) noTransport(t *Target) error {
	m, ok := diagnose.Transport(f.Modules)
	if !ok {
		return fmt.Errorf("%w %v: neither tcp nor infiniband does", rdssock.ErrNoTransport, t.Source)
	}
	why := "is not loaded"
	if m.Module == "rds_rdma" {
		why = "is not loaded, and rds_tcp does not serve it"
	}
	return fmt.Errorf("%w %v: %s %s%s", rdssock.ErrNoTransport, t.Source, m.Module, why, m.Explain(""))
}
