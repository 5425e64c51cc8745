package nlconn

import (
	"context"
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/mdlayher/netlink"
	"github.com/mdlayher/netlink/nltest"
)

const question, reply, other = 18, 16, 17

// kernel answers each question with what f returns.
func kernel(t *testing.T, f func() []netlink.Message) *Conn {
	t.Helper()
	conn := nltest.Dial(func(req []netlink.Message) ([]netlink.Message, error) {
		if len(req) == 0 {
			return nil, io.EOF
		}
		answers := f()
		for i := range answers {
			answers[i].Header.Sequence, answers[i].Header.PID = req[0].Header.Sequence, req[0].Header.PID
		}
		return nltest.Multipart(answers)
	})
	t.Cleanup(func() { conn.Close() })
	return &Conn{Conn: conn}
}

func TestOnlyRepliesOfTheTypeWantedCount(t *testing.T) {
	c := kernel(t, func() []netlink.Message {
		return []netlink.Message{
			{Header: netlink.Header{Type: reply}, Data: []byte("a")},
			{Header: netlink.Header{Type: other}, Data: []byte("b")},
			{Header: netlink.Header{Type: reply}, Data: []byte("c")},
			{Header: netlink.Header{Type: netlink.Done}},
		}
	})
	got, err := c.Ask(question, reply, netlink.Dump, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([][]byte{[]byte("a"), []byte("c")}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestAnInterruptedDumpIsAskedForAgain(t *testing.T) {
	for _, tt := range []struct {
		interrupted, asked int
		want               error
	}{
		{interrupted: 3, asked: 4},
		{interrupted: maxDumps, asked: maxDumps, want: errChanging},
	} {
		asked := 0
		c := kernel(t, func() []netlink.Message {
			asked++
			m := netlink.Message{Header: netlink.Header{Type: reply}}
			if asked <= tt.interrupted {
				m.Header.Flags = netlink.DumpInterrupted
			}
			return []netlink.Message{m, {Header: netlink.Header{Type: netlink.Done}}}
		})
		_, err := c.Ask(question, reply, netlink.Dump, nil)
		if !errors.Is(err, tt.want) || asked != tt.asked {
			t.Errorf("%d interruptions: asked %d times, error %v; want %d, %v", tt.interrupted, asked, err, tt.asked, tt.want)
		}
	}
}

func TestACanceledContextEndsTheExchange(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c, err := Dial(ctx, syscall.NETLINK_ROUTE, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	cancel()
	// The deadline is set by another goroutine.
	for range 1000 {
		if _, err = c.Receive(); err != nil {
			break
		}
	}
	if !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("error %v, want os.ErrDeadlineExceeded", err)
	}
}
