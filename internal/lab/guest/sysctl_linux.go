package guest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/rdskit/rdskit/internal/lab/hosts"
	"github.com/rdskit/rdskit/internal/lab/job"
)

// setSysctl sets a kernel parameter, in the initial network namespace and, if it
// is one that each namespace has of its own, on every host.
func setSysctl(s job.Sysctl, n int) error {
	file := sysctlFile(s.Key)
	set := func() error { return os.WriteFile(file, []byte(s.Value), 0) }
	err := set()
	for _, h := range hosts.All(n) {
		if err != nil {
			break
		}
		// What a namespace does not have is the kernel's as a whole.
		if err = h.Do(set); errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
	}
	if err != nil {
		return fmt.Errorf("sysctl %s=%s: %w", s.Key, s.Value, err)
	}
	return nil
}

// sysctlFile is the file of a parameter. Dots separate its parts, unless there
// is a slash before the first dot: then slashes do, as in sysctl(8).
func sysctlFile(key string) string {
	if i := strings.IndexAny(key, "./"); i >= 0 && key[i] == '.' {
		key = strings.NewReplacer(".", "/", "/", ".").Replace(key)
	}
	return filepath.Join("/proc/sys", filepath.Clean("/"+key))
}
