//go:build !386

package abi

// uint64Align is to how many bytes C aligns a u64 in a struct.
const uint64Align = 8
