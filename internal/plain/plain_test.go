package plain

import "testing"

func TestNamesOfOthersStayOnTheirLineAndOutOfTheTerminal(t *testing.T) {
	for in, want := range map[string]string{
		"a\x1b[2J\nb\u009b1m\x7f\u202ec\xff": "a?[2J?b?1m??c\ufffd",
		"Größe, 東京 [x]":                      "Größe, 東京 [x]",
	} {
		if got := Text(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}
