package info

import (
	"context"
	"errors"
	"net/netip"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/rdsinfo"
)

func addrs(n int) []netip.Addr {
	all := make([]netip.Addr, n)
	for i := range all {
		all[i] = netip.AddrFrom4([4]byte{10, 0, byte(i >> 8), byte(i)})
	}
	return all
}

func TestEachNameIsLookedUpOnce(t *testing.T) {
	var lookups atomic.Int32
	lookup := func(_ context.Context, addr string) ([]string, error) {
		lookups.Add(1)
		switch addr {
		case "10.0.0.0":
			return []string{"db0.example.", "alias.example."}, nil
		case "10.0.0.1":
			return nil, nil
		}
		return nil, errors.New("no such host")
	}
	a := addrs(3)
	got := resolveNames(t.Context(), lookup, append(a, a...))
	if diff := cmp.Diff(map[netip.Addr]string{a[0]: "db0.example"}, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if lookups.Load() != 3 {
		t.Errorf("%d lookups of 3 addresses", lookups.Load())
	}
}

func TestADeadNameServerTakesNoLongerThanTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var most, now atomic.Int32
		dead := func(ctx context.Context, addr string) ([]string, error) {
			if addr == "10.0.0.0" {
				return []string{"first"}, nil
			}
			now.Add(1)
			defer now.Add(-1)
			most.Store(max(most.Load(), now.Load()))
			<-ctx.Done()
			return nil, ctx.Err()
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		got := resolveNames(ctx, dead, addrs(1000))
		if took := time.Since(began); took != 3*time.Second || len(got) != 1 || most.Load() > maxLookups {
			t.Errorf("took %v, found %v, %d at a time", took, got, most.Load())
		}
	})
}

func TestRemoteAddressesAreThoseOfTheTables(t *testing.T) {
	s := readCapture(t, "uml-6.1.176-tcp")
	for _, a := range RemoteAddresses(s, rdsinfo.AllTables()) {
		if !a.IsValid() || a.IsUnspecified() {
			t.Errorf("%v has no name", a)
		}
	}
	if n := len(RemoteAddresses(s, []rdsinfo.Table{rdsinfo.Counters})); n != 0 {
		t.Errorf("%d addresses of counters", n)
	}
	if n := len(RemoteAddresses(s, []rdsinfo.Table{rdsinfo.Connections})); n < 3 {
		t.Errorf("%d addresses of connections", n)
	}
}
