package rdsinfo

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSnapshotsReadBackAsStored(t *testing.T) {
	for _, name := range captures {
		t.Run(name, func(t *testing.T) {
			s := readCapture(t, name)
			b, err := json.Marshal(s)
			if err != nil {
				t.Fatal(err)
			}
			var back Snapshot
			if err := json.Unmarshal(b, &back); err != nil {
				t.Fatal(err)
			}
			for _, table := range AllTables() {
				want, wantErr := tableRows(s, table)
				got, gotErr := tableRows(&back, table)
				if diff := cmp.Diff(want, got, equateAddrs, equateAddrPorts); diff != "" {
					t.Errorf("%s, -want +got:\n%s", table, diff)
				}
				if (wantErr == nil) != (gotErr == nil) || wantErr != nil && wantErr.Error() != gotErr.Error() {
					t.Errorf("%s: %v, want %v", table, gotErr, wantErr)
				}
			}
		})
	}
}

func TestStoredSnapshotsThatMakeNoSenseAreRefused(t *testing.T) {
	const whole = `{"byte_order":"big","word_size":8,"uint64_align":8,"tables":[{"option":10000,"record_size":3,"records":"AAAA"}]}`
	if err := json.Unmarshal([]byte(whole), new(Snapshot)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, old, new, want string }{
		{"another byte order", `"big"`, `"middle"`, `byte order "middle": want little or big`},
		{"another dialect", `{"byte`, `{"dialect":"solaris","byte`, `dialect "solaris": want mainline or uek`},
		{"no byte order", `"byte_order":"big",`, ``, `byte order "": want little or big`},
		{"a word of 3 bytes", `"word_size":8`, `"word_size":3`, "word of 3 bytes: want 4 or 8"},
		{"no alignment", `"uint64_align":8,`, ``, "word of 0 bytes: want 4 or 8"},
		{"records without a size", `"record_size":3,`, ``, "option 10000: records of 0 bytes"},
		{"records of negative size", `"record_size":3,`, `"record_size":-3,`, "option 10000: records of -3 bytes"},
		{"half a record", `"AAAA"`, `"AAAAAA=="`, "option 10000: 4 bytes do not divide into records of 3"},
		{"a table twice", `"tables":[`, `"tables":[{"option":10000,"missing":true},`, "option 10000 is there twice"},
		{"no JSON", `{`, ``, "invalid character"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := Snapshot{}
			err := json.Unmarshal([]byte(strings.Replace(whole, tt.old, tt.new, 1)), &s)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if s.raw != nil {
				t.Error("the snapshot has tables all the same")
			}
		})
	}
}

// What a bundle says of an error must not look like what the program says.
func TestAHostileErrorIsQuoted(t *testing.T) {
	for text, want := range map[string]string{"input/output error": "input/output error", "bad\n\x1b[2Jall is well": `"bad\n\x1b[2Jall is well"`} {
		if got := storedError(text).Error(); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

func FuzzUnmarshalSnapshot(f *testing.F) {
	for _, name := range captures {
		b, err := json.Marshal(readCapture(f, name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var s Snapshot
		if json.Unmarshal(b, &s) != nil {
			return
		}
		for _, table := range AllTables() {
			tableRows(&s, table)
		}
		if _, err := json.Marshal(&s); err != nil {
			t.Errorf("what was read cannot be stored: %v", err)
		}
	})
}
