package rdmadev_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/labtest"
	"github.com/rdskit/rdskit/internal/rdmadev"
	"github.com/rdskit/rdskit/rdssock"
)

func TestMain(m *testing.M) { labtest.Main(m) }

// record is a directory below testdata for what this kernel answers.
var record = flag.String("record", "", "write the kernel's answers to this directory")

func dialLab(t *testing.T) *rdmadev.Client {
	t.Helper()
	labtest.Need(t, labtest.RDMA)
	c, err := rdmadev.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if *record != "" {
		rdmadev.Record(t, c, *record)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

func TestTheSoftDeviceOfTheLab(t *testing.T) {
	c := dialLab(t)
	devices, err := c.Devices()
	if err != nil || len(devices) != 1 {
		t.Fatalf("%+v, %v", devices, err)
	}
	d := devices[0]
	if d.Name != "rxe0" || d.Ports != 1 || d.Type != rdmadev.ChannelAdapter || d.Protocol != "roce" || d.NodeGUID == 0 {
		t.Errorf("device %+v", d)
	}
	if guid, _ := os.ReadFile("/sys/class/infiniband/rxe0/node_guid"); strings.TrimSpace(string(guid)) != d.NodeGUID.String() {
		t.Errorf("GUID %s, in sysfs %s", d.NodeGUID, guid)
	}
	if driver, err := c.Driver(d); driver != "rdma_rxe" || err != nil {
		t.Errorf("driver %q, %v", driver, err)
	}
	ports, err := c.Ports()
	if err != nil || len(ports) != 1 {
		t.Fatalf("%+v, %v", ports, err)
	}
	p := ports[0]
	if p.Device != "rxe0" || p.Number != 1 || p.State != rdmadev.PortActive || p.Physical.String() != "LINK_UP" || p.Netdev != "roce0" || p.LinkLayer != "Ethernet" || p.Rate.MbitPerSecond == 0 {
		t.Errorf("port %+v", p)
	}
	if rate, _ := os.ReadFile("/sys/class/infiniband/rxe0/ports/1/rate"); strings.TrimSpace(string(rate)) != p.Rate.String() {
		t.Errorf("rate %s, in sysfs %s", p.Rate, rate)
	}
}

func TestTheCarrierOfAnAddress(t *testing.T) {
	c := dialLab(t)
	for n := 1; n <= 2; n++ {
		h := labtest.HCA(t, n)
		for _, addr := range []netip.Addr{h.IPv4(), h.IPv6(), netip.AddrFrom16(h.IPv4().As16())} {
			p, gid, err := c.Carrier(addr)
			if err != nil {
				t.Errorf("%s: %v", addr, err)
				continue
			}
			if p.Device != "rxe0" || p.Number != 1 || gid.Addr.Unmap() != addr.Unmap() || gid.Type != "RoCE v2" || gid.Netdev != "roce0" {
				t.Errorf("%s: %+v of %+v", addr, gid, p)
			}
		}
	}
	for _, addr := range []string{"127.0.0.1", "10.8.0.99", "::1"} {
		if _, _, err := c.Carrier(netip.MustParseAddr(addr)); !errors.Is(err, rdmadev.ErrNoPort) || !strings.Contains(err.Error(), addr) {
			t.Errorf("%s: error %v, want ErrNoPort", addr, err)
		}
	}
}

// What RDS makes for a message that offers memory: a connection with two ends, each a
// queue pair of its own, a region, and packets that are counted.
func TestWhatRDSHasOnTheDevice(t *testing.T) {
	c := dialLab(t)
	h1, h2 := labtest.HCA(t, 1), labtest.HCA(t, 2)
	before := counters(t, c)
	mem, err := syscall.Mmap(-1, 0, 64<<10, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(mem)
	from, to := listen(t, h1.IPv4()), listen(t, h2.IPv4())
	oob := cmsg.Encoder{}.AppendRDMAMap(nil, cmsg.RDMAMap{Vec: cmsg.Iovec{Addr: uint64(reflect.ValueOf(mem).Pointer()), Len: uint64(len(mem))}})
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	peer := to.LocalAddr().(rdssock.Addr).AddrPort
	// Nothing may be registered on a connection that has not answered a message.
	if _, _, err := from.WriteMsgContext(ctx, nil, nil, netip.AddrPortFrom(peer.Addr(), 0)); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := from.ReadMsgContext(ctx, nil, nil); err != nil {
		t.Fatal(err)
	}
	if _, _, err := from.WriteMsgContext(ctx, []byte("x"), oob, peer); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := to.ReadMsgContext(ctx, make([]byte, 10), nil); err != nil {
		t.Fatal(err)
	}

	// The side that was connected to may have a message before it knows that it is connected.
	var wrong string
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if wrong = wrongConnections(t, c, h1.IPv4(), h2.IPv4()); wrong == "" {
			break
		}
	}
	if wrong != "" {
		t.Error(wrong)
	}
	ids, err := c.ConnectionIDs()
	if err != nil {
		t.Fatal(err)
	}
	var listening []string
	for _, id := range ids {
		if id.State == rdmadev.Listen && id.Owner.RDS() {
			listening = append(listening, id.Local.String())
		}
	}
	slices.Sort(listening)
	if want := []string{"0.0.0.0:18634", "[::]:16385"}; !slices.Equal(slices.Compact(listening), want) {
		t.Errorf("RDS listens on %v, want %v", listening, want)
	}

	regions, err := c.MemoryRegions()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(regions, func(m rdmadev.MemoryRegion) bool {
		return m.Device == "rxe0" && m.Length == uint64(len(mem)) && m.RemoteKey != 0 && m.Owner.RDS()
	}) {
		t.Errorf("no region of %d bytes in %+v", len(mem), regions)
	}
	if after := counters(t, c); after["sent_pkts"] <= before["sent_pkts"] || after["rcvd_pkts"] <= before["rcvd_pkts"] {
		t.Errorf("counters before %v, after %v", before, after)
	}
}

// wrongConnections tells what is wrong with the two ends of the connection between two addresses.
func wrongConnections(t *testing.T, c *rdmadev.Client, a, b netip.Addr) string {
	t.Helper()
	connections, err := c.Connections()
	if err != nil {
		t.Fatal(err)
	}
	ends := map[netip.Addr]rdmadev.Connection{}
	for _, conn := range connections {
		ends[conn.Local.Addr()] = conn
	}
	for _, ip := range []struct{ local, remote netip.Addr }{{a, b}, {b, a}} {
		conn := ends[ip.local]
		if conn.Remote.Addr() != ip.remote || conn.State != rdmadev.Connect || conn.Space != rdmadev.SpaceTCP || conn.Device != "rxe0" || !conn.Owner.RDS() {
			return fmt.Sprintf("%s: connection %+v", ip.local, conn)
		}
		if q := conn.QP; q.Number == 0 || q.Number != conn.QueuePair || q.Remote != ends[ip.remote].QueuePair || q.Type != rdmadev.ReliableConnection || q.State != rdmadev.RTS {
			return fmt.Sprintf("%s: queue pair %+v", ip.local, q)
		}
	}
	return ""
}

func listen(t *testing.T, addr netip.Addr) *rdssock.Conn {
	t.Helper()
	conn, err := rdssock.Listen(netip.AddrPortFrom(addr, 0), &rdssock.Config{Transport: rdssock.TransportInfiniBand})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

func counters(t *testing.T, c *rdmadev.Client) map[string]uint64 {
	t.Helper()
	ports, err := c.Ports()
	if err != nil || len(ports) != 1 {
		t.Fatalf("%+v, %v", ports, err)
	}
	all, err := c.Counters(ports[0])
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]uint64{}
	for _, counter := range all {
		values[counter.Name] = counter.Value
	}
	return values
}

func TestACancelledClientEnds(t *testing.T) {
	labtest.Need(t, labtest.RDMA)
	ctx, cancel := context.WithCancel(t.Context())
	c, err := rdmadev.Dial(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cancel()
	for began := time.Now(); time.Since(began) < 5*time.Second; time.Sleep(time.Millisecond) {
		if _, err := c.Devices(); err != nil {
			if !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("error %v", err)
			}
			return
		}
	}
	t.Error("it goes on asking")
}
