package kernel

import (
	"os"
	"path/filepath"
	"slices"
)

// CacheDir is the directory that setup unpacks packages into, in the
// user's cache directory: each into a directory of its own.
func CacheDir() (string, error) {
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "rdskit"), nil
}

// Roots are the directories below which kernels and programs are looked for: the
// system's root, and what setup unpacked, the newest kernel first.
func Roots() []string {
	roots := []string{"/"}
	cache, err := CacheDir()
	if err != nil {
		return roots
	}
	unpacked, err := filepath.Glob(filepath.Join(cache, "[^.]*"))
	if err != nil {
		return roots
	}
	slices.SortFunc(unpacked, func(a, b string) int { return CompareReleases(b, a) })
	return append(roots, unpacked...)
}
