package stress

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestTheEndTakesLessTimeWhenSomebodyWaitsForIt(t *testing.T) {
	for _, tt := range []struct {
		name          string
		hurried, done time.Duration // after the end began; a hurry of -1 never comes
	}{
		{"nobody does", -1, 30 * time.Second},
		{"from the start", 0, 1500 * time.Millisecond},
		{"in the midst of it", 10 * time.Second, 11500 * time.Millisecond},
		{"when it is nearly over", 29 * time.Second, 30 * time.Second},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &session{hurried: make(chan struct{})}
				if tt.hurried >= 0 {
					time.AfterFunc(tt.hurried, func() { s.hurry(); s.hurry() })
				}
				began := time.Now()
				ctx, cancel := s.within(drainTime, hurriedDrain)
				defer cancel()
				<-ctx.Done()
				if took := time.Since(began); took != tt.done {
					t.Errorf("done after %v, want %v", took, tt.done)
				}
			})
		})
	}
}
