package stress

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestWhatThePeerSaysIsFitToBeShown(t *testing.T) {
	const hostile = "no memory\nrds-stress: \x1b[2J\u009b1m"
	f := frame{Type: frameVerdict, Error: hostile, Hello: &hello{Version: hostile}, Verdict: &Verdict{Error: hostile}}
	b, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var got frame
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	const want = "no memory; rds-stress: ?[2J?1m"
	if got.Error != want || got.Hello.Version != want || got.Verdict.Error != want {
		t.Errorf("%q, %q and %q: want %q", got.Error, got.Hello.Version, got.Verdict.Error, want)
	}
	b, _ = json.Marshal(strings.Repeat("東", 20000))
	var long Said
	if err := json.Unmarshal(b, &long); err != nil || len(long) > maxSaid+3 || !utf8.ValidString(string(long)) || strings.ContainsRune(string(long), utf8.RuneError) {
		t.Errorf("%d bytes, %v", len(long), err)
	}
	if err := json.Unmarshal([]byte("5"), &long); err == nil {
		t.Error("a number is text")
	}
}
