package lab

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/rdskit/rdskit/internal/lab/job"
)

// umlCommand is the User-Mode Linux for the job in dir. Its inherited files
// are the console and the lines: descriptors 3 and up.
func umlCommand(k kernelImage, c *Config, dir, memory string) *exec.Cmd {
	args := []string{
		k.Image,
		fmt.Sprintf("mem=%dM", c.MemoryMiB),
		"rootfstype=hostfs", "rootflags=/", "ro",
		"init=" + dir + "/init", job.EnvInit + "=" + dir,
		"uml_dir=" + dir, "umid=uml",
		"con=null", "con0=null,fd:3", "ssl=null",
		"ssl0=fd:4", "ssl1=fd:5", "ssl2=fd:6", "ssl3=fd:7",
		// The boot takes seconds longer with 256 legacy pseudo-terminals, self-tests of
		// all ciphers, and a benchmark of RAID 6.
		"pty.legacy_count=0", "cryptomgr.notests=1", "initcall_blacklist=raid6_select_algo",
		"loglevel=5", "panic=-1",
	}
	return &exec.Cmd{
		Path: k.Image, Args: args,
		Env: append(os.Environ(), "TMPDIR="+memory),
	}
}
