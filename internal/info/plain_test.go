package info

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/rdsinfo"
)

func TestNamesOfOthersStayOnTheirLineAndOutOfTheTerminal(t *testing.T) {
	const hostile = "a\x1b[2J\nb\u009b1m\x7f\u202ec\xff"
	if got := Plain(hostile); got != "a?[2J?b?1m??c\ufffd" {
		t.Errorf("%q", got)
	}
	if got := Plain("Größe, 東京 [x]"); got != "Größe, 東京 [x]" {
		t.Errorf("%q", got)
	}
	s := readCapture(t, "uml-6.1.176-tcp")
	processes := make(map[uint64][]rdsinfo.Process)
	sockets, err := s.Sockets()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range sockets {
		processes[k.Inode] = []rdsinfo.Process{{PID: 1, Command: hostile}}
	}
	var plain, named bytes.Buffer
	if err := (&Text{}).Print(&plain, s, rdsinfo.Sockets); err != nil {
		t.Fatal(err)
	}
	if err := (&Text{Joins: Joins{Processes: processes}}).Print(&named, s, rdsinfo.Sockets); err != nil {
		t.Fatal(err)
	}
	if strings.Count(plain.String(), "\n") != strings.Count(named.String(), "\n") || strings.Contains(named.String(), "\x1b") {
		t.Errorf("the names of programs show as %q", named.String())
	}
}
