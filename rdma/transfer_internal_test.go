package rdma

import (
	"errors"
	"testing"

	"github.com/rdskit/rdskit/cmsg"
)

// Pieces stay within one key and 1024 local slices, and are all of the transfer.
func TestATransferIsCutWhereKeysEnd(t *testing.T) {
	const mib = MaxOperation
	r := newRegion(nil, 10*mib, false)
	remote := Remote{Len: 3*mib + 100, Keys: []cmsg.Key{1, 2, 3, 4}}
	tiny := make([]Slice, 2500)
	for i := range tiny {
		tiny[i] = r.Slice(i, 1)
	}
	type part struct {
		key    cmsg.Key
		offset uint64
		size   int
		slices int
	}
	for _, test := range []struct {
		name   string
		offset int64
		local  []Slice
		want   []part
		err    error
	}{
		{"one byte", 0, []Slice{r.Slice(0, 1)}, []part{{1, 0, 1, 1}}, nil},
		{"one key", 0, []Slice{r.Slice(0, mib)}, []part{{1, 0, mib, 1}}, nil},
		{"over a border", mib - 1, []Slice{r.Slice(0, 2)}, []part{{1, mib - 1, 1, 1}, {2, 0, 1, 1}}, nil},
		{"all", 0, []Slice{r.Slice(0, 3*mib+100)}, []part{{1, 0, mib, 1}, {2, 0, mib, 1}, {3, 0, mib, 1}, {4, 0, 100, 1}}, nil},
		{"several slices", mib - 10, []Slice{r.Slice(0, 5), r.Slice(100, 20), r.Slice(7, 0), r.Slice(0, mib)},
			[]part{{1, mib - 10, 10, 2}, {2, 0, mib, 2}, {3, 0, 15, 1}}, nil},
		{"too many slices for one", 0, tiny, []part{{1, 0, 1024, 1024}, {1, 1024, 1024, 1024}, {1, 2048, 452, 452}}, nil},
		{"the last byte", 3*mib + 99, []Slice{r.Slice(0, 1)}, []part{{4, 99, 1, 1}}, nil},
		{"beyond the end", 3*mib + 99, []Slice{r.Slice(0, 2)}, nil, ErrRange},
		{"before the beginning", -1, []Slice{r.Slice(0, 2)}, nil, ErrRange},
		{"nothing", 0, []Slice{r.Slice(0, 0)}, nil, ErrRange},
		{"a slice out of range", 0, []Slice{r.Slice(10*mib, 1)}, nil, ErrRange},
	} {
		t.Run(test.name, func(t *testing.T) {
			tr := Transfer{Remote: remote, Offset: test.offset, Local: test.local}
			pieces, err := tr.cut()
			if !errors.Is(err, test.err) || len(pieces) != len(test.want) {
				t.Fatalf("%d pieces, %v; want %d, %v", len(pieces), err, len(test.want), test.err)
			}
			for i, p := range pieces {
				if got := (part{p.key, p.offset, p.size, len(p.local)}); got != test.want[i] {
					t.Errorf("piece %d is %v, want %v", i, got, test.want[i])
				}
			}
		})
	}
	if _, err := (&Transfer{Remote: Remote{Len: 5}, Local: []Slice{r.Slice(0, 1)}}).cut(); !errors.Is(err, ErrRange) {
		t.Errorf("remote memory without keys: %v", err)
	}
}
