package lab

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"testing"
	"time"
)

// plug connects something that stands for machine n.
func plug(t *testing.T, w *wire, n int) *os.File {
	t.Helper()
	ours, theirs, err := socketPair()
	if err != nil {
		t.Fatal(err)
	}
	done := w.attach(n, ours)
	t.Cleanup(func() {
		ours.Close()
		theirs.Close()
		done.Wait()
	})
	return theirs
}

func frame(text string) []byte {
	return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
}

func send(t *testing.T, f *os.File, text string) {
	t.Helper()
	if _, err := f.Write(frame(text)); err != nil {
		t.Fatal(err)
	}
}

func wantFrame(t *testing.T, f *os.File, text string) {
	t.Helper()
	got := make([]byte, 4+len(text))
	if _, err := io.ReadFull(f, got); err != nil || !bytes.Equal(got, frame(text)) {
		t.Fatalf("%q, %v; want the frame %q", got, err, text)
	}
}

func TestTheWireCarriesFramesUntilItIsCut(t *testing.T) {
	w := newWire()
	a, b := plug(t, w, 1), plug(t, w, 2)
	send(t, a, "to b")
	wantFrame(t, b, "to b")
	send(t, b, "")
	send(t, b, "to a")
	wantFrame(t, a, "")
	wantFrame(t, a, "to a")
	w.cut.Store(true)
	send(t, a, "lost")
	time.Sleep(200 * time.Millisecond) // until it was read
	w.cut.Store(false)
	send(t, a, "mended")
	wantFrame(t, b, "mended")
}

func TestAMachineThatTakesNothingDoesNotStopTheOther(t *testing.T) {
	w := newWire()
	a, b := plug(t, w, 1), plug(t, w, 2)
	big := string(make([]byte, 1500))
	for range 2 * wireQueue {
		send(t, a, big)
	}
	send(t, b, "still there")
	wantFrame(t, a, "still there")
}

func TestAFrameThatIsNoneEndsTheConnection(t *testing.T) {
	w := newWire()
	a, b := plug(t, w, 1), plug(t, w, 2)
	if _, err := a.Write([]byte{0xff, 0xff, 0xff, 0xff}); err != nil {
		t.Fatal(err)
	}
	send(t, b, "x") // is lost or waits for another machine
}
