package sys

import (
	"encoding/binary"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The kernel's struct msghdr and struct mmsghdr, by words of the machine.
func TestMessageHeadersAreLaidOutAsTheKernelHasThem(t *testing.T) {
	const word = unsafe.Sizeof(uintptr(0))
	var h unix.Msghdr
	var mm mmsghdr
	for _, tt := range []struct {
		name      string
		got, want uintptr
	}{
		{"msg_name", unsafe.Offsetof(h.Name), 0},
		{"msg_namelen", unsafe.Offsetof(h.Namelen), word},
		{"msg_iov", unsafe.Offsetof(h.Iov), 2 * word},
		{"msg_iovlen", unsafe.Offsetof(h.Iovlen), 3 * word},
		{"msg_control", unsafe.Offsetof(h.Control), 4 * word},
		{"msg_controllen", unsafe.Offsetof(h.Controllen), 5 * word},
		{"msg_flags", unsafe.Offsetof(h.Flags), 6 * word},
		{"sizeof msghdr", unsafe.Sizeof(h), 7 * word},
		{"msg_len", unsafe.Offsetof(mm.len), 7 * word},
		{"sizeof mmsghdr", unsafe.Sizeof(mm), 8 * word},
		{"sizeof iovec", unsafe.Sizeof(unix.Iovec{}), 2 * word},
	} {
		if tt.got != tt.want {
			t.Errorf("%s is %d, want %d", tt.name, tt.got, tt.want)
		}
	}
}

func TestNothingIsAddedToWhatIsEmpty(t *testing.T) {
	var m Msg
	m.SetData(nil)
	m.SetControl(make([]byte, 24))
	if m.iov[0].Base != nil || m.iov[0].Len != 0 || m.hdr.Iovlen != 1 {
		t.Errorf("data %v of %d bytes", m.iov[0].Base, m.iov[0].Len)
	}
	m.SetControl(nil)
	if m.hdr.Control != nil || m.hdr.Controllen != 0 {
		t.Errorf("control messages %v of %d bytes", m.hdr.Control, m.hdr.Controllen)
	}
}

func TestReferencesEndWhenTheyAreToldTo(t *testing.T) {
	var b Batch
	b.Resize(3)
	for i := range 3 {
		b.Set(i, make([]byte, 10), make([]byte, 10))
	}
	b.Clear()
	for i := range b.hdrs {
		if b.hdrs[i].hdr.Iov != nil || b.hdrs[i].hdr.Control != nil || b.iovs[i].Base != nil {
			t.Errorf("message %d is still referred to", i)
		}
	}
}

// What the kernel says of a name is never believed beyond the room it had.
func TestNameLongerThanItsRoomIsCut(t *testing.T) {
	var m Msg
	binary.NativeEndian.PutUint16(m.name[:], unix.AF_INET6)
	m.hdr.Namelen = 1 << 20
	if _, _, ok := m.Name(); !ok || !m.HasName() {
		t.Error("no name")
	}
	var b Batch
	b.Resize(1)
	b.Set(0, nil, nil)
	b.hdrs[0].hdr.Namelen = 1 << 20
	if _, _, _, name := b.Message(0); len(name) != len(b.names[0]) {
		t.Errorf("a name of %d bytes", len(name))
	}
}
