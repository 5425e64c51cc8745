package rdmadev

import (
	"encoding/binary"
	"encoding/hex"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the golden files of what was decoded")

// fileNames are the names of the recorded answers, before the message's number.
var fileNames = map[command]string{
	cmdGet: "device", cmdPortGet: "port", cmdResQPGet: "queuepairs",
	cmdResCMIDGet: "connections", cmdResMRGet: "regions", cmdGetChardev: "chardev", cmdStatGet: "counters",
}

// decoders are all decoders, by the names of their answers.
var decoders = map[string]func([]byte) (any, error){
	"device":      func(b []byte) (any, error) { return decodeDevice(b) },
	"port":        func(b []byte) (any, error) { return decodePort(b) },
	"queuepairs":  func(b []byte) (any, error) { return decodeQueuePairs(b) },
	"connections": func(b []byte) (any, error) { return decodeConnectionIDs(b) },
	"regions":     func(b []byte) (any, error) { return decodeMemoryRegions(b) },
	"chardev":     func(b []byte) (any, error) { return decodeDriver(b) },
	"counters":    func(b []byte) (any, error) { return decodeCounters(b) },
}

// needLittleEndian skips where the kernel's records would be in another byte order than
// the recorded ones.
func needLittleEndian(t testing.TB) {
	t.Helper()
	if binary.NativeEndian.Uint16([]byte{1, 0}) != 1 {
		t.Skip("the answers were recorded on a little-endian machine")
	}
}

// recorded lists the recorded answers.
func recorded(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*/*.bin")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d recorded answers, %v", len(files), err)
	}
	return files
}

func decoderOf(file string) (name string, decode func([]byte) (any, error)) {
	name, _, _ = strings.Cut(filepath.Base(file), "-")
	return name, decoders[name]
}

// What kernels answered, as recorded by -record in the lab, decodes to what was then
// compared with rdma(8) and sysfs.
func TestRecordedAnswersDecode(t *testing.T) {
	needLittleEndian(t)
	kernels := map[string][]string{}
	for _, file := range recorded(t) {
		name, decode := decoderOf(file)
		dir := filepath.Dir(file)
		kernels[dir] = append(kernels[dir], name)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		v, err := decode(b)
		if err != nil {
			t.Errorf("%s: %v", file, err)
			continue
		}
		got := text(v)
		golden := strings.TrimSuffix(file, ".bin") + ".golden"
		if *update {
			if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got); diff != "" {
			t.Errorf("%s: -want +got\n%s", file, diff)
		}
	}
	for dir, names := range kernels {
		for name := range decoders {
			if !slices.Contains(names, name) {
				t.Errorf("%s has no answer %s", dir, name)
			}
		}
	}
}

// text is a line for each item.
func text(v any) string {
	lines := func(s string) string { return strings.ReplaceAll(s, "} {", "}\n{") + "\n" }
	return lines(fmt.Sprintf("%+v", v))
}

func TestAnswersThatAreCutOffAreErrorsOrShort(t *testing.T) {
	needLittleEndian(t)
	for _, file := range recorded(t) {
		_, decode := decoderOf(file)
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for n := range b {
			decode(b[:n]) // must not panic; whole attributes are a message like another
		}
	}
}

// attr is an attribute in native byte order.
func attr(typ uint16, data []byte) []byte {
	b := binary.NativeEndian.AppendUint16(nil, uint16(4+len(data)))
	b = binary.NativeEndian.AppendUint16(b, typ)
	b = append(b, data...)
	return append(b, make([]byte, -len(b)&3)...)
}

func TestAttributesOfTheWrongSizeAreErrors(t *testing.T) {
	short := []byte{1, 2, 3}
	nested := func(table, entry, typ uint16) []byte { return attr(table, attr(entry, attr(typ, short))) }
	for _, test := range []struct {
		decoder string
		b       []byte
	}{
		{"device", attr(attrDevIndex, short)},
		{"device", attr(attrNodeGUID, short)},
		{"device", attr(attrDevNodeType, short)},
		{"device", short},
		{"device", []byte{0xff, 0xff, 1, 0}},
		{"port", attr(attrPortIndex, short)},
		{"port", attr(attrPortState, short)},
		{"port", attr(attrDevName, []byte("../../etc\x00"))},
		{"queuepairs", nested(attrResQP, attrResQPEntry, attrResLQPN)},
		{"queuepairs", attr(attrResQP, attr(attrResQPEntry, short))},
		{"connections", nested(attrResCMID, attrResCMIDEntry, attrResPS)},
		{"regions", nested(attrResMR, attrResMREntry, attrResMRLen)},
		{"chardev", attr(attrDriverID, short)},
		{"counters", nested(attrHWCounters, attrHWCounterEntry, attrHWCounterValue)},
	} {
		if v, err := decoders[test.decoder](test.b); err == nil {
			t.Errorf("%s %x: %+v, want an error", test.decoder, test.b, v)
		}
	}
}

func TestAddressesOfConnections(t *testing.T) {
	sockaddr := func(s string) []byte {
		b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	family := func(n uint16) string { return hex.EncodeToString(binary.NativeEndian.AppendUint16(nil, n)) }
	for _, test := range []struct {
		name, bytes, want string
	}{
		{"IPv4", family(2) + "48ca 0a080001 0000000000000000", "10.8.0.1:18634"},
		{"IPv4 in a sockaddr_storage", family(2) + "48ca 0a080001" + strings.Repeat("00", 120), "10.8.0.1:18634"},
		{"IPv6", family(10) + "4001 00000000 fd080000000000000000000000000001 00000000", "[fd08::1]:16385"},
		{"IPv4-mapped", family(10) + "4001 00000000 00000000000000000000ffff0a080001 00000000", "10.8.0.1:16385"},
		{"native InfiniBand", family(27) + strings.Repeat("11", 46), "invalid AddrPort"},
		{"too short for its family", family(10) + "4001 00000000 fd08", "invalid AddrPort"},
		{"one byte", "02", "invalid AddrPort"},
		{"none", "", "invalid AddrPort"},
	} {
		if got := addrPort(sockaddr(test.bytes)).String(); got != test.want {
			t.Errorf("%s: %s, want %s", test.name, got, test.want)
		}
	}
}

func TestRates(t *testing.T) {
	for _, test := range []struct {
		s    string
		want Rate
	}{
		{"100 Gb/sec (4X EDR)", Rate{100000, 4, "EDR"}},
		{"2.5 Gb/sec (1X SDR)", Rate{2500, 1, "SDR"}},
		{"1.25 Gb/sec (4X)", Rate{1250, 4, ""}},
		{"10 Gb/sec", Rate{10000, 0, ""}},
		{"", Rate{}},
		{"unknown", Rate{}},
		{"-1 Gb/sec (4X EDR)", Rate{}},
		{"NaN Gb/sec (4X EDR)", Rate{}},
		{"1e300 Gb/sec", Rate{}},
		{"10 Gb/sec (many lanes)", Rate{10000, 0, ""}},
	} {
		if got := parseRate(test.s); got != test.want {
			t.Errorf("%q: %+v, want %+v", test.s, got, test.want)
		}
		if test.want != (Rate{}) && !strings.Contains(test.s, "many") && test.want.String() != test.s {
			t.Errorf("%q prints as %q", test.s, test.want)
		}
	}
}

func TestTheCarrierIsFoundAmongPorts(t *testing.T) {
	gid := func(s, kind string) GID { return GID{Addr: netip.MustParseAddr(s), Type: kind, Netdev: "eth0"} }
	roce := Port{Device: "mlx5_0", Number: 1, LinkLayer: "Ethernet"}
	ib := Port{Device: "mlx5_1", Number: 2, LinkLayer: "InfiniBand"}
	gids := map[string][]GID{
		"mlx5_0": {gid("fe80::1", "IB/RoCE v1"), gid("::ffff:10.0.0.1", "IB/RoCE v1"), gid("::ffff:10.0.0.1", "RoCE v2"), gid("fd00::1", "IB/RoCE v1")},
		"mlx5_1": {gid("fe80::2:c903:0:1", "IB/RoCE v1")},
	}
	find := func(addr, ipoib string) (Port, GID, error) {
		var inHardware netip.Addr
		if ipoib != "" {
			inHardware = netip.MustParseAddr(ipoib)
		}
		return carrier(netip.MustParseAddr(addr), inHardware, []Port{roce, {Device: "gone"}, ib}, func(p Port) ([]GID, error) {
			if p.Device == "gone" {
				return nil, os.ErrNotExist
			}
			return gids[p.Device], nil
		})
	}
	for _, test := range []struct{ name, addr, ipoib, device, kind string }{
		{"IPv4 on RoCE, version 2 before 1", "10.0.0.1", "", "mlx5_0", "RoCE v2"},
		{"IPv4-mapped", "::ffff:10.0.0.1", "", "mlx5_0", "RoCE v2"},
		{"IPv6 on RoCE", "fd00::1", "", "mlx5_0", "IB/RoCE v1"},
		{"link-local, with its zone", "fe80::1%eth0", "", "mlx5_0", "IB/RoCE v1"},
		{"on IPoIB", "10.1.0.1", "fe80::2:c903:0:1", "mlx5_1", "IB/RoCE v1"},
	} {
		p, g, err := find(test.addr, test.ipoib)
		if err != nil || p.Device != test.device || g.Type != test.kind {
			t.Errorf("%s: %+v, %+v, %v", test.name, p, g, err)
		}
	}
	if _, _, err := find("10.2.0.1", ""); err == nil || !strings.Contains(err.Error(), "10.2.0.1") {
		t.Errorf("error %v, want one that names the address", err)
	}
}

func TestNamesOfStates(t *testing.T) {
	for want, got := range map[string]fmt.Stringer{
		"ACTIVE": PortActive, "DOWN": PortDown, "PortState(9)": PortState(9), "LINK_UP": PhysicalState(5), "PhysicalState(99)": PhysicalState(99),
		"CA": ChannelAdapter, "RNIC": RNIC, "NodeType(0)": NodeType(0), "RC": ReliableConnection, "DRIVER": QueuePairType(0xff), "QueuePairType(7)": QueuePairType(7),
		"RTS": RTS, "ERR": Err, "QueuePairState(7)": QueuePairState(7), "CONNECT": Connect, "LISTEN": Listen, "DISCONNECT": Disconnect, "ConnectionState(11)": ConnectionState(11),
		"TCP": SpaceTCP, "IB": SpaceIB, "UDP": SpaceUDP, "IPoIB": SpaceIPoIB, "PortSpace(0x7)": PortSpace(7),
		"0002:c903:0000:00ff": GUID(0x0002c903000000ff),
	} {
		if got.String() != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}
