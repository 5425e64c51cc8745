package stress

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKeysThatComeAgainAreCounted(t *testing.T) {
	const ms = time.Millisecond
	h := keyHistory{}
	for _, tt := range []struct {
		name   string
		issues []issue
		want   KeyReuse
	}{
		{"none", nil, KeyReuse{}},
		{"new ones", []issue{{1, 10 * ms}, {2, 11 * ms}}, KeyReuse{Issued: 2}},
		{"again, and twice", []issue{{1, 20 * ms}, {3, 21 * ms}, {1, 24 * ms}}, KeyReuse{Issued: 3, Again: 2, Min: 4 * ms, Mean: 7 * ms}},
		{"of a sample before the last", []issue{{2, 111 * ms}}, KeyReuse{Issued: 1, Again: 1, Min: 100 * ms, Mean: 100 * ms}},
	} {
		if diff := cmp.Diff(tt.want, h.reuse(tt.issues)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}

func TestAKeyMeterKeepsOnlySoMany(t *testing.T) {
	var m keyMeter
	for range 2 {
		for i := range maxKeys + 5 {
			m.add(uint32(i), time.Duration(i))
		}
		if n := len(m.handOver()); n != maxKeys {
			t.Errorf("%d keys, want %d", n, maxKeys)
		}
	}
	if n := len(m.handOver()); n != 0 {
		t.Errorf("%d keys once more", n)
	}
}
