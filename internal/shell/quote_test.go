package shell

import (
	"os/exec"
	"testing"
)

func TestQuote(t *testing.T) {
	for text, want := range map[string]string{
		"eth0":                     "eth0",
		"fe80::2%eth0":             "fe80::2%eth0",
		"/etc/modprobe.d/rds.conf": "/etc/modprobe.d/rds.conf",
		"":                         "''",
		"net:[4026531840]":         "'net:[4026531840]'",
		"a b":                      "'a b'",
		"$(reboot)":                "'$(reboot)'",
		"it's":                     `'it'\''s'`,
		"a\nb":                     "'a\nb'",
		"~root":                    "'~root'",
		"#1":                       "'#1'",
	} {
		got := Quote(text)
		if got != want {
			t.Errorf("%q becomes %s, want %s", text, got, want)
		}
		out, err := exec.Command("sh", "-c", "printf %s "+got).Output()
		if err != nil || string(out) != text {
			t.Errorf("a shell takes %s for %q, %v", got, out, err)
		}
	}
}
