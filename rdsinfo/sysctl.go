package rdsinfo

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/rdskit/rdskit/internal/sys"
)

// coreSysctls bound the buffers of RDS sockets.
var coreSysctls = []string{"rmem_default", "rmem_max", "wmem_default", "wmem_max"}

// initialSysctl is a parameter that only the initial network namespace has
// (net/rds/sysctl.c:rds_sysctl_init).
const initialSysctl = "net.rds.reconnect_max_delay_ms"

func readSysctls(root string) map[string]string {
	values := make(map[string]string)
	for _, pattern := range []string{"net/rds/*", "net/rds/*/*"} {
		files, _ := filepath.Glob(filepath.Join(root, pattern))
		for _, f := range files {
			add(values, root, f)
		}
	}
	for _, name := range coreSysctls {
		add(values, root, filepath.Join(root, "net/core", name))
	}
	return values
}

// add reads a file of one line, named by its path below root.
func add(values map[string]string, root, file string) {
	b, err := os.ReadFile(file)
	if err != nil {
		return // a directory, or not there
	}
	name, err := filepath.Rel(root, file)
	if err != nil {
		return
	}
	values[strings.ReplaceAll(name, "/", ".")] = strings.TrimSpace(string(b))
}

// addInitialSysctls adds the parameters that only the initial network namespace has, if
// the process may enter that of process 1 and it is the one.
func (b *Bundle) addInitialSysctls() {
	if _, have := b.Sysctls[initialSysctl]; have {
		b.Namespace.Initial = true
		return
	}
	f, err := os.Open("/proc/1/ns/net")
	if err != nil {
		return
	}
	defer f.Close()
	var initial map[string]string
	if err := sys.InNetNS(int(f.Fd()), func() error {
		initial = readSysctls("/proc/sys")
		return nil
	}); err != nil {
		return
	}
	if _, have := initial[initialSysctl]; !have {
		return
	}
	for name, value := range initial {
		if _, have := b.Sysctls[name]; !have {
			b.Sysctls[name] = value
		}
	}
}
