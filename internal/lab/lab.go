// Package lab boots a small kernel with RDS in a virtual machine and runs a
// command in it that sees the host's files.
package lab

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/rdskit/rdskit/internal/lab/job"
)

// A Profile is a kind of virtual machine.
type Profile string

// The profiles.
const (
	UML Profile = "uml" // User-Mode Linux: loopback and TCP, one processor
)

// Exit statuses of a lab beyond those of its command.
const (
	ExitTimeout  = 124 // the command ran for longer than Config.Timeout
	ExitNoResult = 125 // the lab could not be set up, or the machine ended without a result
	ExitTainted  = 126 // the kernel warned or broke while the command ran
	ExitNotFound = 127 // the command could not be started
)

// A Config says which machine to boot and what to run in it.
type Config struct {
	Profile Profile
	Args    []string // the command and its arguments
	Dir     string   // working directory; writes below it are real
	Env     []string

	Hosts    int    // network namespaces h1 to hN
	On       string // where the command runs: a host's name, or "init"
	Netem    string // what disturbs each host's sending, as tc(8) takes it
	Modules  []string
	Sysctls  []job.Sysctl
	Writable []string // further paths below which writes are real

	MemoryMiB int
	Timeout   time.Duration // of the command; 0 is none

	Stdin          *os.File // nil is the null device
	Stdout, Stderr io.Writer
	Signals        <-chan os.Signal // to pass on to the command
}

// A Report is how a lab went.
type Report struct {
	Status int           // exit status for the launcher
	Boot   time.Duration // from the start of the machine to that of the command
	Kernel string        // the kernel's release
}

// A Failure is a lab that did not end with its command's own status.
type Failure struct {
	Status  int
	Reason  string
	Console []string // the end of the machine's console or of the kernel's log
}

func (f *Failure) Error() string {
	if len(f.Console) == 0 {
		return f.Reason
	}
	return fmt.Sprintf("%s\n  %s", f.Reason, strings.Join(f.Console, "\n  "))
}
