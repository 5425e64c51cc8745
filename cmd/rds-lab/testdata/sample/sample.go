// Package sample is tested inside and outside the lab, to compare.
package sample

// Sign is -1, 0 or 1. The tests leave a part of it uncovered.
func Sign(n int) int {
	switch {
	case n > 0:
		return 1
	case n < 0:
		return -1
	}
	return 0
}
