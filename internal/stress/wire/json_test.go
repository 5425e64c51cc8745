package wire

import (
	"encoding/json"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestOptionsSurviveJSON(t *testing.T) {
	want := Options{
		Version: "2.3.11", Depth: 1 << 31, ReqSize: 2, AckSize: 3, RDMASize: 4, Port: 65535, Tasks: 6, Time: 1<<32 - 1,
		SendAddr: netip.MustParseAddr("192.168.0.2"), RecvAddr: netip.MustParseAddr("192.168.0.1"),
		SummaryOnly: true, Trace: true, ShowParams: true, CongMonitor: true, RDMAUseGetMR: true, RDMACacheMRs: true,
		RDMAMode: RDMAReadOnly, RDMAVector: 8, RDMAAlignment: 9, ConnectRetries: 10, Sender: SenderC, TOS: 255, Async: true,
		NoINQ: true, Bursty: true, SyncBursty: true,
	}
	b, err := json.Marshal(&want)
	if err != nil {
		t.Fatal(err)
	}
	// The addresses are those of the other form, which comes first.
	got := Options{SendAddr: want.SendAddr, RecvAddr: want.RecvAddr}
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, addrs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJSONLeavesWhatItDoesNotName(t *testing.T) {
	o := Options{Depth: 5, Verify: true, Sender: SenderC}
	if err := json.Unmarshal([]byte(`{"always_bursty": 1, "req_size": 77, "of another release": [1, 2]}`), &o); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Options{Depth: 5, ReqSize: 77, Verify: true, Sender: SenderC, Bursty: true}, o, addrs); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestJSONOfNoOptionsIsRefused(t *testing.T) {
	for _, bad := range []string{
		``, `[]`, `"depth"`, `{"req_depth": "8"}`, `{"req_depth": 1e30}`, `{"req_depth": 0.5}`, `{"nr_tasks": -1}`, `{"tos": 256}`, `{"version": 2}`, `{`,
	} {
		o := Options{Depth: 5}
		if err := json.Unmarshal([]byte(bad), &o); err == nil {
			t.Errorf("%s is taken as %+v", bad, o)
		}
		if o.Depth != 5 {
			t.Errorf("%s changes the depth to %d", bad, o.Depth)
		}
	}
}

func FuzzJSONOptions(f *testing.F) {
	b, _ := json.Marshal(&Options{Version: "2.3.11", Depth: 8, Bursty: true})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		var o, again Options
		if json.Unmarshal(b, &o) != nil {
			return
		}
		b, err := json.Marshal(&o)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(b, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(o, again, addrs); diff != "" {
			t.Errorf("(-first +again):\n%s", diff)
		}
	})
}
