// Package netem reads what disturbs a network path, in the syntax of
// tc-netem(8), into what the kernel's netem queueing discipline takes.
package netem

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/florianl/go-tc"
)

// A Spec is one setting of the discipline. The zero Spec disturbs nothing.
// Probabilities and correlations are fractions of 1.
type Spec struct {
	Delay, Jitter    time.Duration
	DelayCorrelation float64

	Loss, LossCorrelation           float64
	Duplicate, DuplicateCorrelation float64
	Corrupt, CorruptCorrelation     float64
	// Reorder is the share of the packets that are sent at once while the others
	// are delayed; with Gap only each Gap-th packet is.
	Reorder, ReorderCorrelation float64
	Gap                         uint32

	Rate  uint64 // bytes a second; 0 is unlimited
	Limit uint32 // packets that the queue holds; 0 is the kernel's 1000
}

// Parse reads words as tc takes them: "delay 10ms 2ms loss 5% duplicate 1%
// corrupt 0.1% reorder 25% 50% gap 5 rate 1mbit limit 2000", in any order,
// each at most once.
func Parse(s string) (Spec, error) {
	p := parser{words: strings.Fields(s), seen: map[string]bool{}}
	var spec Spec
	for !p.end() {
		if err := p.setting(&spec); err != nil {
			return Spec{}, err
		}
	}
	if spec.Reorder > 0 && spec.Delay == 0 {
		return Spec{}, errors.New("reorder needs a delay: what is not delayed cannot be overtaken")
	}
	if spec.Gap > 0 && spec.Reorder == 0 {
		return Spec{}, errors.New("gap needs reorder")
	}
	return spec, nil
}

type parser struct {
	words []string
	seen  map[string]bool
}

func (p *parser) end() bool { return len(p.words) == 0 }

func (p *parser) setting(s *Spec) (err error) {
	name := p.words[0]
	p.words = p.words[1:]
	if p.seen[name] {
		return fmt.Errorf("%s is given twice", name)
	}
	p.seen[name] = true
	switch name {
	case "delay":
		if s.Delay, err = p.duration(name); err != nil {
			return err
		}
		if s.Jitter, err = p.optionalDuration(); err != nil || s.Jitter == 0 {
			return err
		}
		s.DelayCorrelation, err = p.optionalPercent()
	case "loss":
		if !p.end() && p.words[0] == "random" {
			p.words = p.words[1:]
		}
		s.Loss, s.LossCorrelation, err = p.probability(name)
	case "duplicate":
		s.Duplicate, s.DuplicateCorrelation, err = p.probability(name)
	case "corrupt":
		s.Corrupt, s.CorruptCorrelation, err = p.probability(name)
	case "reorder":
		s.Reorder, s.ReorderCorrelation, err = p.probability(name)
	case "gap":
		s.Gap, err = p.count(name)
	case "limit":
		s.Limit, err = p.count(name)
	case "rate":
		s.Rate, err = p.rate(name)
	default:
		return fmt.Errorf("%q is none of delay, loss, duplicate, corrupt, reorder, gap, rate, limit", name)
	}
	return err
}

func (p *parser) value(name string) (string, error) {
	if p.end() {
		return "", fmt.Errorf("%s needs a value", name)
	}
	v := p.words[0]
	p.words = p.words[1:]
	return v, nil
}

func (p *parser) duration(name string) (time.Duration, error) {
	v, err := p.value(name)
	if err != nil {
		return 0, err
	}
	d, ok := parseDuration(v)
	if !ok {
		return 0, fmt.Errorf("%s %q: not a time such as 10ms", name, v)
	}
	return d, nil
}

// optionalDuration reads a time if the next word begins like one.
func (p *parser) optionalDuration() (time.Duration, error) {
	if !p.numeric() {
		return 0, nil
	}
	return p.duration("jitter")
}

func (p *parser) optionalPercent() (float64, error) {
	if !p.numeric() {
		return 0, nil
	}
	return p.percent("correlation")
}

func (p *parser) numeric() bool {
	return !p.end() && strings.ContainsAny(p.words[0][:1], "0123456789.")
}

// parseDuration takes what tc takes: a bare number is microseconds.
func parseDuration(s string) (time.Duration, bool) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyz")
	var unit time.Duration
	switch s[len(digits):] {
	case "", "us", "usec", "usecs":
		unit = time.Microsecond
	case "ms", "msec", "msecs":
		unit = time.Millisecond
	case "s", "sec", "secs":
		unit = time.Second
	default:
		return 0, false
	}
	f, err := strconv.ParseFloat(digits, 64)
	f *= float64(unit)
	if err != nil || !(f >= 0 && f <= float64(math.MaxInt64/2)) {
		return 0, false
	}
	return time.Duration(f), true
}

func (p *parser) percent(name string) (float64, error) {
	v, err := p.value(name)
	if err != nil {
		return 0, err
	}
	f, err := strconv.ParseFloat(strings.TrimSuffix(v, "%"), 64)
	if err != nil || !(f >= 0 && f <= 100) {
		return 0, fmt.Errorf("%s %q: not a share from 0%% to 100%%", name, v)
	}
	return f / 100, nil
}

func (p *parser) probability(name string) (probability, correlation float64, err error) {
	if probability, err = p.percent(name); err != nil {
		return 0, 0, err
	}
	correlation, err = p.optionalPercent()
	return probability, correlation, err
}

func (p *parser) count(name string) (uint32, error) {
	v, err := p.value(name)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseUint(v, 10, 32)
	if err != nil || n == 0 {
		return 0, fmt.Errorf("%s %q: not a whole number from 1 to %d", name, v, uint32(math.MaxUint32))
	}
	return uint32(n), nil
}

// rate reads a number of bits (bit, kbit, mbit, gbit) or bytes (bps, kbps, mbps,
// gbps) a second. The prefixes are powers of 1000.
func (p *parser) rate(name string) (uint64, error) {
	v, err := p.value(name)
	if err != nil {
		return 0, err
	}
	digits := strings.TrimRight(strings.ToLower(v), "abcdefghijklmnopqrstuvwxyz")
	unit := strings.ToLower(v)[len(digits):]
	scale := 1.0
	if unit != "" && strings.ContainsAny(unit[:1], "kmg") {
		scale = map[byte]float64{'k': 1e3, 'm': 1e6, 'g': 1e9}[unit[0]]
		unit = unit[1:]
	}
	f, err := strconv.ParseFloat(digits, 64)
	switch unit {
	case "bps":
	case "bit", "":
		scale /= 8
	default:
		err = strconv.ErrSyntax
	}
	f *= scale
	if err != nil || !(f >= 1 && f <= math.MaxInt64) {
		return 0, fmt.Errorf("%s %q: not a rate such as 10mbit", name, v)
	}
	return uint64(f), nil
}

// kernelLimit is how many packets the queue holds unless told otherwise, as
// in tc.
const kernelLimit = 1000

// Kernel is the spec as the kernel takes it. Every attribute is there, zero
// ones too: what an attribute set earlier would stay in force without it.
func (s Spec) Kernel() *tc.Netem {
	limit := s.Limit
	if limit == 0 {
		limit = kernelLimit
	}
	gap := s.Gap
	if s.Reorder > 0 && gap == 0 {
		gap = 1
	}
	latency, jitter := s.Delay.Nanoseconds(), s.Jitter.Nanoseconds()
	rate := s.Rate
	return &tc.Netem{
		Qopt:      tc.NetemQopt{Limit: limit, Loss: fraction(s.Loss), Gap: gap, Duplicate: fraction(s.Duplicate)},
		Latency64: &latency,
		Jitter64:  &jitter,
		Corr: &tc.NetemCorr{
			Delay: fraction(s.DelayCorrelation), Loss: fraction(s.LossCorrelation), Dup: fraction(s.DuplicateCorrelation),
		},
		Reorder: &tc.NetemReorder{Probability: fraction(s.Reorder), Correlation: fraction(s.ReorderCorrelation)},
		Corrupt: &tc.NetemCorrupt{Probability: fraction(s.Corrupt), Correlation: fraction(s.CorruptCorrelation)},
		Rate:    &tc.NetemRate{Rate: uint32(min(rate, math.MaxUint32))},
		Rate64:  &rate,
	}
}

// fraction scales 0 to 1 to the kernel's 0 to 2^32-1.
func fraction(f float64) uint32 { return uint32(math.Round(f * math.MaxUint32)) }
