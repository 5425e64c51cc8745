//go:build !linux

package sys

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"sync/atomic"
	"syscall"
	"time"
)

// errLinux is what everything here returns elsewhere.
var errLinux = fmt.Errorf("RDS sockets need Linux: %w", errors.ErrUnsupported)

const (
	MSG_PEEK = 1 << iota
	MSG_TRUNC
	MSG_CTRUNC
	MSG_ZEROCOPY
	MSG_DONTWAIT
	MSG_WAITFORONE

	SOL_SOCKET = iota
	SO_SNDBUF
	SO_RCVBUF
	SO_SNDBUFFORCE
	SO_RCVBUFFORCE
	SO_ZEROCOPY
)

const HugePage = 2 << 20

type PollEvents int16

const (
	PollIn PollEvents = 1 << iota
	PollOut
)

type Msg struct{}

func (*Msg) SetData([]byte)                              {}
func (*Msg) SetParts(_, _ []byte)                        {}
func (*Msg) SetControl([]byte)                           {}
func (*Msg) SetName(netip.AddrPort, uint32)              {}
func (*Msg) Name() (ap netip.AddrPort, _ uint32, _ bool) { return ap, 0, false }
func (*Msg) SetTo(*Name)                                 {}
func (*Msg) RawName() []byte                             { return nil }
func (*Msg) HasName() bool                               { return false }
func (*Msg) Flags() int                                  { return 0 }
func (*Msg) ControlLen() int                             { return 0 }
func (*Msg) Send(uintptr, int) (int, syscall.Errno)      { return 0, syscall.ENOSYS }
func (*Msg) Recv(uintptr, int) (int, syscall.Errno)      { return 0, syscall.ENOSYS }
func (*Msg) SendRaw(uintptr, int) (int, syscall.Errno)   { return 0, syscall.ENOSYS }
func (*Msg) RecvRaw(uintptr, int) (int, syscall.Errno)   { return 0, syscall.ENOSYS }

func SendtoRaw(uintptr, []byte, int, *Name) syscall.Errno          { return syscall.ENOSYS }
func RecvfromRaw(uintptr, []byte, int, *Name) (int, syscall.Errno) { return 0, syscall.ENOSYS }

type Batch struct{}

func (*Batch) Resize(int)                                     {}
func (*Batch) Set(int, []byte, []byte)                        {}
func (*Batch) Again(int, int)                                 {}
func (*Batch) Clear()                                         {}
func (*Batch) Message(int) (_, _, _ int, _ []byte)            { return 0, 0, 0, nil }
func (*Batch) Recv(uintptr, int, int) (int, syscall.Errno)    { return 0, syscall.ENOSYS }
func (*Batch) RecvRaw(uintptr, int, int) (int, syscall.Errno) { return 0, syscall.ENOSYS }

func Dup(uintptr) (uintptr, error)             { return 0, errLinux }
func SetBlocking(uintptr, time.Duration) error { return errLinux }

type PollSet struct{}

func (*PollSet) Resize(int)                       {}
func (*PollSet) Set(int, uintptr, PollEvents)     {}
func (*PollSet) Events(int) PollEvents            { return 0 }
func (*PollSet) Wait(time.Duration) syscall.Errno { return syscall.ENOSYS }

func InNetNS(netns int, f func() error) error {
	if netns == 0 {
		return f()
	}
	return errLinux
}

func SetRoundRobin(int) (func() error, error) { return nil, errLinux }
func SetBatch() error                         { return errLinux }

func SetTimerSlack(time.Duration) error { return errLinux }

type Socket struct{ infoRetries atomic.Int64 }

func NewSocket(int) (*Socket, error)                              { return nil, errLinux }
func FileSocket(*os.File) (*Socket, error)                        { return nil, errLinux }
func (*Socket) Raw() syscall.RawConn                              { return nil }
func (*Socket) Close() error                                      { return errLinux }
func (*Socket) SetReadDeadline(time.Time) error                   { return errLinux }
func (*Socket) SetWriteDeadline(time.Time) error                  { return errLinux }
func (*Socket) Dup() (*Socket, error)                             { return nil, errLinux }
func (*Socket) File() (*os.File, error)                           { return nil, errLinux }
func (*Socket) Bind(netip.AddrPort, uint32) error                 { return errLinux }
func (*Socket) Connect(netip.AddrPort, uint32) error              { return errLinux }
func (*Socket) LocalName() (ap netip.AddrPort, _ uint32, _ error) { return ap, 0, errLinux }
func (*Socket) PeerName() (ap netip.AddrPort, _ uint32, _ error)  { return ap, 0, errLinux }
func (*Socket) Getsockopt(int, int, []byte) (int, int, error)     { return 0, 0, errLinux }
func (*Socket) GetsockoptInt(int, int) (int, error)               { return 0, errLinux }
func (*Socket) Setsockopt(int, int, []byte) error                 { return errLinux }
func (*Socket) SetsockoptInt(int, int, int) error                 { return errLinux }
func (*Socket) SetTOS(uint8) error                                { return errLinux }
func (*Socket) TOS() (uint8, error)                               { return 0, errLinux }

func Writable(uintptr) bool { return false }

func Setsockopt(uintptr, int, int, []byte) syscall.Errno    { return syscall.ENOSYS }
func SetsockoptRaw(uintptr, int, int, []byte) syscall.Errno { return syscall.ENOSYS }

func MapAnonymous(int) ([]byte, error)            { return nil, errLinux }
func WantHuge([]byte)                             {}
func MapFile(uintptr, int64, int) ([]byte, error) { return nil, errLinux }
func Unmap([]byte) error                          { return errLinux }
func Address([]byte) uint64                       { return 0 }

func TimestampOption() int { return 0 }
