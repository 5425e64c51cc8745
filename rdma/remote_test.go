package rdma_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/rdma"
)

func TestRemoteMemoryIsDescribedInBytes(t *testing.T) {
	r := rdma.Remote{Len: 1<<20 + 5, Keys: []cmsg.Key{0x1_0000_0203, 7}}
	b, err := r.AppendBinary([]byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	want := "x" + "\x00\x00\x00\x00\x00\x10\x00\x05" + "\x00\x00\x00\x01\x00\x00\x02\x03" + "\x00\x00\x00\x00\x00\x00\x00\x07"
	if diff := cmp.Diff(want, string(b)); diff != "" {
		t.Errorf("the bytes differ (-want +got):\n%s", diff)
	}
	var got rdma.Remote
	if err := got.UnmarshalBinary(b[1:]); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, got); diff != "" {
		t.Errorf("read back (-want +got):\n%s", diff)
	}
}

func TestRemoteMemoryThatCannotBeIsRefused(t *testing.T) {
	for _, r := range []rdma.Remote{
		{},
		{Len: 1},
		{Len: -1, Keys: []cmsg.Key{1}},
		{Len: 1<<20 + 1, Keys: []cmsg.Key{1}},
		{Len: 1 << 20, Keys: []cmsg.Key{1, 2}},
		{Len: 1<<63 - 1, Keys: []cmsg.Key{1}},
	} {
		if _, err := r.MarshalBinary(); !errors.Is(err, rdma.ErrRange) {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := rdma.RemoteOf(0, 10).MarshalBinary(); !errors.Is(err, rdma.ErrNotRegistered) {
		t.Errorf("without a key: %v", err)
	}
}

func FuzzRemote(f *testing.F) {
	f.Add([]byte("\x00\x00\x00\x00\x00\x10\x00\x05\x00\x00\x00\x01\x00\x00\x02\x03\x00\x00\x00\x00\x00\x00\x00\x07"))
	f.Add([]byte{})
	f.Add(make([]byte, 16))
	f.Fuzz(func(t *testing.T, b []byte) {
		var r rdma.Remote
		if r.UnmarshalBinary(b) != nil {
			return
		}
		got, err := r.MarshalBinary()
		if err != nil || !bytes.Equal(got, b) {
			t.Errorf("%x is read as %+v and written as %x, %v", b, r, got, err)
		}
	})
}
