package stress

import "time"

// A gapMeter finds the longest time in which nothing arrived, and how long it
// then took until a request that was sent in it had its answer.
type gapMeter struct {
	last              time.Duration // when something arrived
	longest, recovery time.Duration
	began             time.Duration // of the gap that is not recovered from, 0 for none
}

func (g *gapMeter) progress(now time.Duration) {
	if d := now - g.last; d > pause {
		g.longest = max(g.longest, d)
		if g.began == 0 {
			g.began = g.last
		}
	}
	g.last = now
}

// until is the longest so far, with the one that may be under way.
func (g *gapMeter) until(now time.Duration) time.Duration {
	if d := now - g.last; d > pause {
		return max(g.longest, d)
	}
	return g.longest
}

func (g *gapMeter) answered(now, sent time.Duration) {
	if g.began != 0 && sent > g.began {
		g.recovery = max(g.recovery, now-g.began)
		g.began = 0
	}
}
