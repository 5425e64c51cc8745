package stress

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Processors is what /proc/stat says of all processors together, in clock ticks since boot, and how
// many interrupts there were.
type Processors struct {
	User, Nice, System, Idle, IOWait, IRQ, SoftIRQ, Steal uint64
	Interrupts                                            uint64
}

// ReadProcessors reads /proc/stat.
func ReadProcessors() (Processors, error) {
	f, err := os.Open("/proc/stat")
	if err != nil {
		return Processors{}, err
	}
	defer f.Close()
	return parseProcessors(f)
}

func parseProcessors(r io.Reader) (Processors, error) {
	var p Processors
	found := false
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20) // the line of interrupts is long
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) < 2 {
			continue
		}
		switch fields[0] {
		case "cpu":
			found = true
			for i, v := range []*uint64{&p.User, &p.Nice, &p.System, &p.Idle, &p.IOWait, &p.IRQ, &p.SoftIRQ, &p.Steal} {
				if i+1 >= len(fields) {
					break // old kernels have fewer
				}
				n, err := strconv.ParseUint(fields[i+1], 10, 64)
				if err != nil {
					return Processors{}, fmt.Errorf("/proc/stat: %w", err)
				}
				*v = n
			}
		case "intr":
			n, err := strconv.ParseUint(fields[1], 10, 64)
			if err != nil {
				return Processors{}, fmt.Errorf("/proc/stat: %w", err)
			}
			p.Interrupts = n
		}
	}
	if err := lines.Err(); err != nil {
		return Processors{}, fmt.Errorf("/proc/stat: %w", err)
	}
	if !found {
		return Processors{}, fmt.Errorf("/proc/stat: no line of processor time")
	}
	return p, nil
}

// Since is what happened from before until p. Where a counter went back, as some do, it is 0.
func (p Processors) Since(before Processors) Processors {
	sub := func(a, b uint64) uint64 { return a - min(a, b) }
	return Processors{
		User: sub(p.User, before.User), Nice: sub(p.Nice, before.Nice), System: sub(p.System, before.System),
		Idle: sub(p.Idle, before.Idle), IOWait: sub(p.IOWait, before.IOWait), IRQ: sub(p.IRQ, before.IRQ),
		SoftIRQ: sub(p.SoftIRQ, before.SoftIRQ), Steal: sub(p.Steal, before.Steal),
		Interrupts: sub(p.Interrupts, before.Interrupts),
	}
}

// Total is all ticks, those without work included.
func (p Processors) Total() uint64 {
	return p.User + p.Nice + p.System + p.Idle + p.IOWait + p.IRQ + p.SoftIRQ + p.Steal
}

// Share returns how much of the total the ticks are, in percent.
func (p Processors) Share(ticks uint64) float64 {
	if p.Total() == 0 {
		return 0
	}
	return 100 * float64(ticks) / float64(p.Total())
}

// Busy is the share that did work, interrupts included, in percent.
func (p Processors) Busy() float64 { return p.Share(p.Total() - p.Idle - p.IOWait) }
