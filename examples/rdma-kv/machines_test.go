package main

import (
	"bytes"
	"context"
	"errors"
	"net/netip"
	"testing"
	"time"

	"github.com/rdskit/rdskit/internal/labtest"
)

// While the device still tries to reach a dead host, it has the memory that the value was in.
func TestTwoMachinesTheServerOutlivesTheHostOfAClient(t *testing.T) {
	peer := labtest.Peer(t)
	if testing.Short() {
		t.Skip("takes half a minute: the device tries for as long")
	}
	address := netip.AddrPortFrom(labtest.Own(t).IPv4(), 5500)
	s := serverAt(t, address)
	value := bytes.Repeat([]byte("v"), maxValue)
	s.values["key"] = value
	s.serveOne(t, peer.Move(labtest.Command(t, "get", address.String(), "key")), value)
	peer.Kill()
	s.patience = 500 * time.Millisecond
	scratch := s.scratch
	nobody := netip.AddrPortFrom(peer.IPv4(), 4000)
	err := s.answer(t.Context(), request{Op: "get", Key: "key", Size: maxValue}, 0x4700, nobody)
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("get for a host that is dead: %v", err)
	}
	if s.scratch == scratch || scratch.Bytes() != nil {
		t.Error("the server uses memory that the device has")
	}
	s.patience = patience
	s.serveOne(t, labtest.Command(t, "get", address.String(), "key"), value)
}
