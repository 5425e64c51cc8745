//go:build mips || mipsle || mips64 || mips64le

package abi

// SOL_SOCKET is the level of the options and control messages that all
// sockets have. MIPS has its own number.
const SOL_SOCKET = 0xffff
