package wire

import (
	"encoding/binary"
	"testing"
)

func TestFillingIsFoundWhereItDiffers(t *testing.T) {
	const pattern = 0x0102030405060708
	for _, f := range []Filling{Repeated, Counted} {
		for _, size := range []int{0, 1, 7, 8, 9, 64, 1000, 1001} {
			b := make([]byte, size)
			f.Fill(b, pattern)
			if at := f.Check(b, pattern); at != -1 {
				t.Errorf("%v, %d bytes: differs at %d from itself", f, size, at)
			}
			for at := range b {
				b[at] ^= 0x80
				if got := f.Check(b, pattern); got != at {
					t.Errorf("%v, %d bytes: byte %d differs, found at %d", f, size, at, got)
				}
				b[at] ^= 0x80
			}
			if size > 0 && f.Check(b, pattern+1<<56+1) == -1 {
				t.Errorf("%v, %d bytes: another pattern passes", f, size)
			}
		}
	}
}

func TestFillingOfCIsThePatternInEachWord(t *testing.T) {
	b := make([]byte, 24)
	Repeated.Fill(b, 12<<32|0x92)
	for ; len(b) > 0; b = b[8:] {
		if w := binary.NativeEndian.Uint64(b); w != 12<<32|0x92 {
			t.Errorf("word %#x", w)
		}
	}
}

func TestCountedFillingHasNoTwoPartsAlike(t *testing.T) {
	b := make([]byte, 1<<16)
	Counted.Fill(b, 7)
	seen := map[string]int{}
	for at := 0; at < len(b); at += 8 {
		if before, ok := seen[string(b[at:at+8])]; ok {
			t.Fatalf("bytes %d and %d are alike", before, at)
		}
		seen[string(b[at:at+8])] = at
	}
}

func BenchmarkFill(b *testing.B) {
	memory := make([]byte, 64<<10)
	for name, f := range map[string]Filling{"repeated": Repeated, "counted": Counted} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(memory)))
			for b.Loop() {
				f.Fill(memory, 1)
				if f.Check(memory, 1) != -1 {
					b.Fatal("differs")
				}
			}
		})
	}
}
