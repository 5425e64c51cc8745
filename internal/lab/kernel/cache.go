package kernel

import (
	"os"
	"path/filepath"
)

// CacheDir is the root that setup unpacks packages into, in the user's cache
// directory.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "rdskit", "root"), nil
}
