package target

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/module"
	"github.com/rdskit/rdskit/rdssock"
)

// modules is a system with these files below its root.
func modules(t *testing.T, files map[string]string) module.System {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return module.System{Root: root}
}

func TestAMissingModuleIsToldBeforeASocketCouldLoadIt(t *testing.T) {
	const c = "unable to create RDS socket, errno: 97 (Address family not supported by protocol): the rds module is not loaded"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"nothing blocks it", nil, c + " (modprobe rds_tcp or rds_rdma, which bring it along; or let --load do it where the kernel can)"},
		{"a blacklist stops autoload", map[string]string{"etc/modprobe.d/rds.conf": "blacklist rds\n"},
			c + `, and "blacklist rds" in /etc/modprobe.d/rds.conf, line 1 stops the kernel from loading it by itself (modprobe rds_tcp or rds_rdma, which bring it along all the same)`},
		{"so does an alias", map[string]string{"lib/modprobe.d/a.conf": "alias net-pf-21 off\n"},
			c + `, and "alias net-pf-21 off" in /lib/modprobe.d/a.conf, line 1 stops the kernel from loading it by itself (modprobe rds_tcp or rds_rdma, which bring it along all the same)`},
		{"an install line stops everything", map[string]string{"usr/lib/modprobe.d/x.conf": "\ninstall rds /bin/true\n"},
			c + `, and "install rds /bin/true" in /usr/lib/modprobe.d/x.conf, line 2 stops it from being loaded: remove that line, then modprobe rds_tcp or rds_rdma, which bring it along`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := &Finder{Modules: modules(t, tt.files)}
			_, err := f.Find(t.Context(), "127.0.0.1")
			if diff := cmp.Diff(tt.want, err.Error()); diff != "" {
				t.Errorf("Find (-want +got):\n%s", diff)
			}
			if !errors.Is(err, rdssock.ErrModuleMissing) || !errors.Is(err, syscall.EAFNOSUPPORT) {
				t.Errorf("%v is neither ErrModuleMissing nor EAFNOSUPPORT", err)
			}
			if _, err := f.FindAll(t.Context()); !errors.Is(err, rdssock.ErrModuleMissing) {
				t.Errorf("FindAll: %v", err)
			}
		})
	}
}

func TestAMissingTransportIsToldWithItsModule(t *testing.T) {
	target := &Target{Source: netip.MustParseAddr("10.9.0.1")}
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  string
	}{
		{"none is loaded", nil, "10.9.0.1: rds_tcp is not loaded (modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE)"},
		{"TCP is loaded", map[string]string{"sys/module/rds_tcp/refcnt": ""}, "10.9.0.1: rds_rdma is not loaded, and rds_tcp does not serve it (modprobe rds_rdma)"},
		{"both are loaded", map[string]string{"sys/module/rds_tcp/refcnt": "", "sys/module/rds_rdma/refcnt": ""}, "10.9.0.1: neither tcp nor infiniband does"},
		{"TCP is blocked", map[string]string{"etc/modprobe.d/a.conf": "install rds_tcp /bin/false"},
			`10.9.0.1: rds_tcp is not loaded, and "install rds_tcp /bin/false" in /etc/modprobe.d/a.conf, line 1 stops it from being loaded: remove that line, then modprobe rds_tcp, or rds_rdma for InfiniBand and RoCE`},
	} {
		f := &Finder{Modules: modules(t, tt.files)}
		err := f.noTransport(target)
		if want := "no transport serves the address " + tt.want; err.Error() != want {
			t.Errorf("%s: got %v, want %s", tt.name, err, want)
		}
	}
}

// A fakeResolver knows one name.
type fakeResolver []netip.Addr

func (r fakeResolver) LookupNetIP(_ context.Context, network, host string) ([]netip.Addr, error) {
	if host != "db1" {
		return nil, errors.New("no such host")
	}
	return slices.Clone(r), nil
}

func TestLookup(t *testing.T) {
	resolver := fakeResolver{netip.MustParseAddr("fd00::2"), netip.MustParseAddr("::ffff:10.9.0.2"), netip.MustParseAddr("10.9.0.3")}
	for _, tt := range []struct {
		network, host, want string // want is the error if it has blanks
	}{
		{"", "db1", "fd00::2,10.9.0.2,10.9.0.3"},
		{"ip4", "db1", "10.9.0.2,10.9.0.3"},
		{"ip6", "db1", "fd00::2"},
		{"", "10.9.0.9", "10.9.0.9"},
		{"ip4", "::ffff:10.9.0.9", "10.9.0.9"},
		{"ip6", "fe80::1%eth0", "fe80::1%eth0"},
		{"ip6", "10.9.0.9", "10.9.0.9 is not of the address family asked for"},
		{"ip4", "::1", "::1 is not of the address family asked for"},
		{"", "db2", "no such host"},
		{"", "", "it is neither an address nor a name"},
		{"", "a b", "it is neither an address nor a name"},
	} {
		f := &Finder{Network: tt.network, Resolver: resolver}
		as, err := f.Lookup(t.Context(), tt.host)
		var list []string
		for _, a := range as {
			list = append(list, a.String())
		}
		got := strings.Join(list, ",")
		if err != nil {
			got = err.Error()
		}
		if got != tt.want {
			t.Errorf("%s %q: got %s, want %s", tt.network, tt.host, got, tt.want)
		}
	}
	f := &Finder{Network: "ip6", Resolver: fakeResolver{netip.MustParseAddr("10.9.0.2")}}
	if _, err := f.Lookup(t.Context(), "db1"); err == nil || !strings.Contains(err.Error(), "db1 has no address of the family") {
		t.Errorf("a name of the other family only: %v", err)
	}
}

// A failing resolver fails.
type failing struct{ err error }

func (r failing) LookupNetIP(context.Context, string, string) ([]netip.Addr, error) {
	return nil, r.err
}

func TestNamesWithoutAnAddressAreSaidInTheWordsOfTheTool(t *testing.T) {
	const server = "10.0.0.53:53"
	for _, tt := range []struct {
		name, unknown, want string
		err                 error
	}{
		{"unknown", "", "Cannot parse destination address <db9>: no such host: neither /etc/hosts nor DNS has it",
			&net.DNSError{Err: "no such host", Name: "db9", Server: server, IsNotFound: true}},
		{"to another tool", "invalid name '%s'", "invalid name 'db9': no such host: neither /etc/hosts nor DNS has it",
			&net.DNSError{Err: "no such host", Name: "db9", IsNotFound: true}},
		{"nobody to ask", "", "Cannot parse destination address <db9>: /etc/hosts does not have it, and asking the name server 10.0.0.53:53 failed: connection refused",
			&net.DNSError{Err: "read udp 10.0.0.1:4711->10.0.0.53:53: read: connection refused", Name: "db9", Server: server}},
		{"no answer", "", "Cannot parse destination address <db9>: /etc/hosts does not have it, and asking the name server 10.0.0.53:53 failed: i/o timeout",
			&net.DNSError{Err: "i/o timeout", Name: "db9", Server: server, IsTimeout: true}},
		{"another error", "", "Cannot parse destination address <db9>: no memory", errors.New("no memory")},
	} {
		f := &Finder{Resolver: failing{tt.err}, Unknown: tt.unknown, Load: true}
		if _, err := f.Find(t.Context(), "db9"); err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.want)
		}
	}
	f := &Finder{Resolver: failing{&net.DNSError{Err: "canceled", UnwrapErr: context.Canceled, Name: "db9", Server: server}}, Load: true}
	if _, err := f.Find(t.Context(), "db9"); !errors.Is(err, context.Canceled) {
		t.Errorf("a lookup that was canceled: %v", err)
	}
}
