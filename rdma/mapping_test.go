package rdma

import (
	"errors"
	"strings"
	"testing"
)

const procMaps = `00400000-00452000 r-xp 00000000 08:02 173521 /usr/bin/program
c000000000-c000400000 rw-p 00000000 00:00 0
7f0000000000-7f0000010000 rw-s 00000000 00:01 2048 /memfd:one (deleted)
7f0000010000-7f0000020000 rw-s 00000000 00:0f 7 /dev/hugepages/two
7f0000030000-7f0000040000 rw-s 00000000 00:01 2049 /dev/zero (deleted)
`

func TestAMappingIsSharedAsAWhole(t *testing.T) {
	for _, test := range []struct {
		name       string
		addr, size uint64
		want       error
	}{
		{"a whole mapping", 0x7f0000000000, 0x10000, nil},
		{"the end of one and the start of the next", 0x7f000000ffff, 2, nil},
		{"two whole mappings", 0x7f0000000000, 0x20000, nil},
		{"into a hole", 0x7f0000010000, 0x10001, ErrNotMapped},
		{"across a hole", 0x7f0000010000, 0x30000, ErrNotMapped},
		{"private memory", 0xc000000100, 1, ErrNotMapped},
		{"code", 0x400000, 1, ErrNotMapped},
		{"before all", 0x1000, 1, ErrNotMapped},
		{"behind all", 0x7f0000040000, 1, ErrNotMapped},
	} {
		if err := checkMapping(strings.NewReader(procMaps), test.addr, test.size); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func FuzzMappings(f *testing.F) {
	f.Add(procMaps, uint64(0x7f0000000000), uint64(16))
	f.Add("1-0 rw-s 0 0 0", uint64(0), uint64(1))
	f.Fuzz(func(t *testing.T, text string, addr, size uint64) {
		err := checkMapping(strings.NewReader(text), addr, size)
		if err == nil && size > 0 && addr+size > addr && !strings.Contains(text, "rw") {
			t.Errorf("%#x, %d bytes, are a mapping of %q", addr, size, text)
		}
	})
}
