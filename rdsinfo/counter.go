package rdsinfo

// A Counter is one of the kernel's counters of what its RDS did since the
// module was loaded. They are summed over the processors that are online, so
// that one can go back when a processor goes offline. Which there are depends on the
// kernel and its modules.
type Counter struct {
	Name  string
	Value uint64
}

const sizeofCounter = 40

func parseCounter(r record) Counter {
	return Counter{Name: r.text(0, 32), Value: r.u64(32)}
}

// Counters returns the counters in the kernel's order: those of rds, then
// those of the transports that are loaded.
func (s *Snapshot) Counters() ([]Counter, error) {
	return decode(s, Counters, sizeofCounter, parseCounter)
}
