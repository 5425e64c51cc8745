package job

import (
	"fmt"
	"strconv"
	"strings"
)

// CallSocket is where a machine of several takes calls of its processes. They and
// the answers are messages of the type Call, one line of JSON each.
const CallSocket = "/run/rds-lab.sock"

// A Call is a piece of a conversation that a process on one machine has with another machine, or
// with the launcher about it.
type Call struct {
	From  int  `json:"from,omitempty"` // number of the machine that calls
	To    int  `json:"to,omitempty"`
	ID    int  `json:"id,omitempty"` // of the conversation, given by From
	Reply bool `json:"reply,omitempty"`

	// One of these begins a conversation.
	Run  *Command `json:"run,omitempty"`
	Wire string   `json:"wire,omitempty"` // CutWire or MendWire
	Kill bool     `json:"kill,omitempty"`
	Boot bool     `json:"boot,omitempty"`

	// What a Run goes on with. Each end sends at most Window pieces of a stream ahead of what
	// the other has taken.
	Stream Line   `json:"stream,omitempty"`
	Data   []byte `json:"data,omitempty"`
	EOF    bool   `json:"eof,omitempty"`   // of the stream
	Taken  bool   `json:"taken,omitempty"` // a piece of the stream
	Signal int    `json:"signal,omitempty"`
	Hangup bool   `json:"hangup,omitempty"` // the caller is gone

	// The last reply.
	Exit *Exit `json:"exit,omitempty"`
}

// The values of Call.Wire.
const (
	CutWire  = "cut"
	MendWire = "mend"
)

// Pieces of a stream.
const (
	Window    = 8
	PieceSize = 32 << 10
)

// A Command is what to run on another machine.
type Command struct {
	Args []byteString `json:"args"`
	Dir  byteString   `json:"dir"`
	Env  []byteString `json:"env"`
}

// A byteString is a string that JSON keeps even if it is no UTF-8.
type byteString []byte

// NewCommand makes a Command.
func NewCommand(args []string, dir string, env []string) *Command {
	return &Command{Args: byteStrings(args), Dir: byteString(dir), Env: byteStrings(env)}
}

// Strings are the parts of the command.
func (c *Command) Strings() (args []string, dir string, env []string) {
	return stringsOf(c.Args), string(c.Dir), stringsOf(c.Env)
}

func byteStrings(all []string) []byteString {
	b := make([]byteString, len(all))
	for i, s := range all {
		b[i] = byteString(s)
	}
	return b
}

func stringsOf(all []byteString) []string {
	s := make([]string, len(all))
	for i, b := range all {
		s[i] = string(b)
	}
	return s
}

// An Exit is how a conversation ended.
type Exit struct {
	Status   int    `json:"status,omitempty"` // of the command, in the shell's terms
	Error    string `json:"error,omitempty"`
	NotFound bool   `json:"notFound,omitempty"` // Error is about the command itself
}

// MaxMachines is how many machines a lab can have.
const MaxMachines = 2

// MachineName is the name of a machine, such as "m1".
func MachineName(n int) string { return "m" + strconv.Itoa(n) }

// ParseMachine finds the number of a machine's name.
func ParseMachine(name string) (int, error) {
	digits, ok := strings.CutPrefix(name, "m")
	n, err := strconv.Atoi(digits)
	if !ok || err != nil || n < 1 || n > MaxMachines || digits != strconv.Itoa(n) {
		return 0, fmt.Errorf("%q is not the name of a machine: they are m1 and m2", name)
	}
	return n, nil
}
