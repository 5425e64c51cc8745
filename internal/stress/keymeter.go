package stress

import (
	"cmp"
	"slices"
	"time"
)

// maxKeys bounds how many keys are kept between two samples, as in C.
const maxKeys = 32 << 10

// An issue is a key that the kernel gave out.
type issue struct {
	key uint32
	at  time.Duration
}

// A keyMeter keeps the keys of a worker until they are handed over.
type keyMeter struct{ issues, spare []issue }

func (m *keyMeter) add(key uint32, at time.Duration) {
	if len(m.issues) < maxKeys {
		m.issues = append(m.issues, issue{key, at})
	}
}

// handOver returns those since the last time, which are the caller's until the next.
func (m *keyMeter) handOver() []issue {
	m.issues, m.spare = m.spare[:0], m.issues
	return m.spare
}

// KeyReuse is how often keys came again, and how soon.
type KeyReuse struct {
	Issued, Again int
	Min, Mean     time.Duration // 0 if none came again
}

// keyHistory knows when each key was given out last.
type keyHistory map[uint32]time.Duration

// Keys is how often keys came again since the last call, with RDMA.KeyMeter.
func (r *Run) Keys() *KeyReuse {
	if !r.cfg.RDMA.KeyMeter {
		return nil
	}
	issues := slices.Concat(ask(r, func(w *worker) []issue { return w.remote.meter.handOver() })...)
	slices.SortFunc(issues, func(a, b issue) int { return cmp.Compare(a.at, b.at) })
	k := r.keys.reuse(issues)
	return &k
}

// reuse takes in keys in the order in which they were given out.
func (h keyHistory) reuse(issues []issue) KeyReuse {
	r := KeyReuse{Issued: len(issues)}
	var sum time.Duration
	for _, i := range issues {
		if last, ok := h[i.key]; ok {
			d := i.at - last
			if r.Again == 0 || d < r.Min {
				r.Min = d
			}
			r.Again++
			sum += d
		}
		h[i.key] = i.at
	}
	if r.Again > 0 {
		r.Mean = sum / time.Duration(r.Again)
	}
	return r
}
