// Package job holds what the launcher and the guest of a lab say to each
// other: the job description, the result, and the messages of the control
// line.
package job

import (
	"bufio"
	"encoding/gob"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// EnvInit is the variable on the kernel command line that names the job
// directory. The kernel hands unknown "name=value" parameters to process 1 as
// its environment, so it marks the process that has to be the lab's init.
const EnvInit = "RDS_LAB_INIT"

// EnvLab and EnvPromise are set for the command in the lab: the profile it
// runs on, and the features that the lab promises, separated by commas.
const (
	EnvLab     = "RDS_LAB"
	EnvPromise = "RDS_LAB_PROMISE"
	EnvHosts   = "RDS_LAB_HOSTS"
	EnvMachine = "RDS_LAB_MACHINE" // of several: its name
)

// How the guest of a PC finds what it shares with the launcher.
const (
	ShareTag   = "host"     // the mount tag of the host's root
	PortPrefix = "rds-lab." // comes before the line's name in that of its port
	ModuleDir  = "modules"  // in the initramfs: modules to load, in the order of their names
)

// A Line is one of the streams of bytes between launcher and guest, by its
// number.
type Line int

// The lines. Control carries messages both ways, one line of JSON each; the others
// carry what their names say, and nothing else.
const (
	Control Line = iota
	Stdin
	Stdout
	Stderr
	NumLines
)

// String is the name by which the guest of a PC finds the line.
func (l Line) String() string {
	switch l {
	case Control:
		return "control"
	case Stdin:
		return "stdin"
	case Stdout:
		return "stdout"
	case Stderr:
		return "stderr"
	}
	return fmt.Sprintf("Line(%d)", int(l))
}

// InitialNamespace is the value of [Job.On] for the network namespace that
// the kernel booted with.
const InitialNamespace = "init"

// A Sysctl is a kernel parameter to set before the command starts.
type Sysctl struct {
	Key   string
	Value string
}

// A Job is what the guest is to do. Paths are those of the host.
type Job struct {
	Profile    string
	Args       []string
	Dir        string
	Env        []string
	Hosts      int
	RDMA       bool
	Machine    int  // of several, counted from 1; 0: it is alone
	Idle       bool // there is no command: another machine sends some
	On         string
	Netem      string
	ModuleTree string   // empty: all is built in
	RootFiles  []string // modules to load before the root can be made, in this order, as paths in the tree
	Files      []string // modules to load then
	Sysctls    []Sysctl
	Writable   []string
	Stdin      bool
	Terminal   *WindowSize // the command's streams are a terminal of this size
}

// A WindowSize is the size of a terminal, in characters.
type WindowSize struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// A Result is how the job ended.
type Result struct {
	// Error says why the command could not be started; empty if it was.
	Error string
	// NotFound tells that Error is about the command itself.
	NotFound bool

	ExitCode int
	Signal   int

	// Taint is /proc/sys/kernel/tainted before and after the command.
	TaintBefore uint64
	TaintAfter  uint64
	// KernelLog is what the kernel logged before Error, or while the command ran
	// if the taint changed.
	KernelLog []string
}

// Status is the exit status in the shell's terms: 128 plus the number of the
// signal that ended the command.
func (r *Result) Status() int {
	if r.Signal != 0 {
		return 128 + r.Signal
	}
	return r.ExitCode
}

// A Message is one line of JSON on the control line.
type Message struct {
	// From the guest.
	Ready   bool  `json:"ready,omitempty"` // of several machines: waits for Go
	Started bool  `json:"started,omitempty"`
	Ack     int   `json:"ack,omitempty"` // signals delivered so far
	Done    *Done `json:"done,omitempty"`

	// From the launcher.
	Go       bool   `json:"go,omitempty"`
	Stop     bool   `json:"stop,omitempty"` // ends an idle machine
	Signal   int    `json:"signal,omitempty"`
	StdinEOF *int64 `json:"stdinEOF,omitempty"` // bytes sent in all

	WindowSize *WindowSize `json:"windowSize,omitempty"` // the terminal's, when it changes

	// From one machine to another, through the launcher.
	Call *Call `json:"call,omitempty"`
}

// Done says how many bytes the guest wrote on the stdout and stderr lines.
// The result file is complete when it is sent.
type Done struct {
	Stdout int64 `json:"stdout"`
	Stderr int64 `json:"stderr"`
}

const (
	jobFile    = "job"
	resultFile = "result"
)

// Write puts the job description into dir.
func (j *Job) Write(dir string) error { return writeFile(filepath.Join(dir, jobFile), j) }

// Read reads the job description in dir.
func Read(dir string) (*Job, error) {
	j := new(Job)
	if err := readFile(filepath.Join(dir, jobFile), j); err != nil {
		return nil, err
	}
	if len(j.Args) == 0 && !j.Idle {
		return nil, fmt.Errorf("job in %s has no command", dir)
	}
	return j, nil
}

// Write puts the result into dir, whole or not at all.
func (r *Result) Write(dir string) error { return writeFile(filepath.Join(dir, resultFile), r) }

// ReadResult reads the result in dir. The error is fs.ErrNotExist if the guest
// did not get that far.
func ReadResult(dir string) (*Result, error) {
	r := new(Result)
	if err := readFile(filepath.Join(dir, resultFile), r); err != nil {
		return nil, err
	}
	return r, nil
}

// The files are in the format of package gob, which keeps strings that are no
// UTF-8: arguments, variables and paths may be anything.
func writeFile(name string, v any) error {
	f, err := os.OpenFile(name+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	err = errors.Join(gob.NewEncoder(w).Encode(v), w.Flush())
	if err == nil {
		// The guest's page cache stands between this file and the host.
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".new", name)
}

func readFile(name string, v any) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := gob.NewDecoder(bufio.NewReader(f)).Decode(v); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
