package rdma_test

import (
	"errors"
	"net/netip"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

func TestOtherTransportsHaveNoRDMA(t *testing.T) {
	labtest.Need(t, labtest.TCP)
	for name, a := range map[string]string{"tcp": "127.0.0.1", "loopback": "127.0.0.1"} {
		cfg := &rdssock.Config{}
		if name == "tcp" {
			cfg.Transport = rdssock.TransportTCP
		}
		sock, err := rdssock.Listen(netip.AddrPortFrom(netip.MustParseAddr(a), 0), cfg)
		if err != nil {
			t.Fatal(err)
		}
		_, err = rdma.New(sock, nil)
		if !errors.Is(err, rdma.ErrNoRDMA) || !errors.Is(err, rdssock.ErrNotSupported) || !errors.Is(err, errors.ErrUnsupported) ||
			!strings.Contains(err.Error(), "transport "+name) {
			t.Errorf("%s: %v", name, err)
		}
		// The socket is as it was.
		if _, err := sock.WriteToAddrPort(nil, sock.LocalAddr().(rdssock.Addr).AddrPort); err != nil {
			t.Error(err)
		}
		sock.Close()
	}
}
