package info

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rdskit/rdskit/internal/plain"
	"github.com/rdskit/rdskit/rdsinfo"
)

// A Verdict is what a monitoring plugin reports. Its value is the exit status.
type Verdict int

const (
	VerdictOK Verdict = iota
	VerdictWarning
	VerdictCritical
	VerdictUnknown
)

// String returns the verdict as plugins print it.
func (v Verdict) String() string {
	switch v {
	case VerdictOK:
		return "OK"
	case VerdictWarning:
		return "WARNING"
	case VerdictCritical:
		return "CRITICAL"
	}
	return "UNKNOWN"
}

// A Metric is something that a check can measure.
type Metric struct {
	kind metricKind
	// counter is the name for a counter or its rate.
	counter string
}

type metricKind int

const (
	metricCounter metricKind = iota
	metricRate
	metricDown
	metricStuck
	metricQueueBytes
)

// Metrics of a check.
func CounterMetric(name string) Metric { return Metric{metricCounter, name} }
func RateMetric(name string) Metric    { return Metric{metricRate, name} } // per second
func DownMetric() Metric               { return Metric{kind: metricDown} }
func StuckMetric() Metric              { return Metric{kind: metricStuck} }
func QueueBytesMetric() Metric         { return Metric{kind: metricQueueBytes} }

// Tables returns the tables that the metric is measured by.
func (m Metric) Tables() []rdsinfo.Table {
	switch m.kind {
	case metricCounter, metricRate:
		return []rdsinfo.Table{rdsinfo.Counters}
	case metricDown:
		return []rdsinfo.Table{rdsinfo.Connections}
	case metricStuck:
		return []rdsinfo.Table{rdsinfo.Connections, rdsinfo.SendQueue, rdsinfo.RetransmitQueue}
	}
	return []rdsinfo.Table{rdsinfo.SendQueue, rdsinfo.RetransmitQueue}
}

// Compares reports whether the metric takes two snapshots.
func (m Metric) Compares() bool { return m.kind == metricRate || m.kind == metricStuck }

// label names the metric in the performance data.
func (m Metric) label() string {
	switch m.kind {
	case metricRate:
		return m.counter + "_per_second"
	case metricDown:
		return "connections_down"
	case metricStuck:
		return "connections_stuck"
	case metricQueueBytes:
		return "queue_bytes"
	}
	return m.counter
}

// unit is that of the performance data: c for what only grows.
func (m Metric) unit() string {
	switch m.kind {
	case metricCounter:
		return "c"
	case metricQueueBytes:
		return "B"
	}
	return ""
}

// A Check measures one thing and holds it to thresholds.
type Check struct {
	Metric            Metric
	Warning, Critical *Threshold
	// Filter chooses among connections and messages.
	Filter Filter
}

// A Finding is the result of a Check.
type Finding struct {
	Verdict Verdict
	text    string
}

// String returns the line that a plugin prints.
func (f Finding) String() string { return "RDS " + f.Verdict.String() + " - " + f.text }

// Unknown is the finding of a check that could not be made.
func Unknown(err error) Finding {
	// A line of a plugin ends at "|", where the performance data begins.
	return Finding{VerdictUnknown, plain.Text(strings.NewReplacer("|", "/", "\n", " ").Replace(err.Error()))}
}

// Run measures in the later snapshot or, if the metric compares, from the earlier to the later.
func (c *Check) Run(earlier, later *rdsinfo.Snapshot) Finding {
	m, err := c.measure(earlier, later)
	if err != nil {
		return Unknown(err)
	}
	verdict := VerdictOK
	switch {
	case c.Critical.Alerts(m.value):
		verdict = VerdictCritical
	case c.Warning.Alerts(m.value):
		verdict = VerdictWarning
	}
	return Finding{verdict, fmt.Sprintf("%s is %s%s|%s=%s%s;%s;%s;0", c.Metric.label(), m.number, m.about,
		c.Metric.label(), m.number, c.Metric.unit(), c.Warning, c.Critical)}
}

// A measurement is a value, its exact number, and what to say about it.
type measurement struct {
	value         float64
	number, about string
}

func whole(n uint64, about string) measurement {
	return measurement{float64(n), strconv.FormatUint(n, 10), about}
}

func (c *Check) measure(earlier, later *rdsinfo.Snapshot) (measurement, error) {
	switch c.Metric.kind {
	case metricCounter:
		counters, err := later.Counters()
		if err != nil {
			return measurement{}, err
		}
		for _, k := range counters {
			if k.Name == c.Metric.counter {
				return whole(k.Value, ""), nil
			}
		}
		return measurement{}, c.noCounter(counters)
	case metricRate:
		counters, err := later.Counters()
		if err != nil {
			return measurement{}, err
		}
		d := rdsinfo.Compare(earlier, later)
		for _, k := range d.Counters {
			if k.Name != c.Metric.counter {
				continue
			}
			rate := d.Rate(k)
			if !rate.Known {
				return measurement{}, fmt.Errorf("counter %s went back from %d to %d: the module was loaded anew", k.Name, k.Before, k.After)
			}
			return measurement{rate.Value, strconv.FormatFloat(rate.Value, 'f', 3, 64), ""}, nil
		}
		return measurement{}, c.noCounter(counters)
	case metricDown:
		connections, err := selectRows(later.Connections, connectionAttributes, true, c.Filter)
		if err != nil {
			return measurement{}, err
		}
		var down []string
		for _, k := range connections {
			if k.State() != rdsinfo.StateUp {
				down = append(down, fmt.Sprintf("%s to %s (%s)", k.Local, k.Remote, k.State()))
			}
		}
		return whole(uint64(len(down)), list(down, fmt.Sprintf(" of %d", len(connections)))), nil
	case metricStuck:
		if _, err := later.Connections(); err != nil {
			return measurement{}, err
		}
		var stuck []string
		for _, k := range rdsinfo.Compare(earlier, later).Connections {
			if k.Stuck && c.Filter.keeps(deltaAttributes(&k)) {
				stuck = append(stuck, fmt.Sprintf("%s to %s (%d bytes in %d messages)", k.Local, k.Remote, k.Waiting.Bytes, k.Waiting.Messages))
			}
		}
		return whole(uint64(len(stuck)), list(stuck, "")), nil
	}
	var bytes uint64
	for _, t := range c.Metric.Tables() {
		queue := func() ([]rdsinfo.Message, error) { return later.Queue(t) }
		messages, err := selectRows(queue, messageAttributes, true, c.Filter)
		if err != nil {
			return measurement{}, err
		}
		for _, m := range messages {
			bytes += uint64(m.Bytes)
		}
	}
	return whole(bytes, ""), nil
}

// list says which, naming the first few.
func list(names []string, total string) string {
	const most = 5
	switch {
	case len(names) == 0:
		return total
	case len(names) > most:
		names = append(names[:most:most], fmt.Sprintf("and %d more", len(names)-most))
	}
	return total + ": " + strings.Join(names, ", ")
}

// noCounter names counters that are like the one that is not there.
func (c *Check) noCounter(counters []rdsinfo.Counter) error {
	var like []string
	for _, k := range counters {
		if strings.Contains(k.Name, c.Metric.counter) || strings.Contains(c.Metric.counter, k.Name) {
			like = append(like, k.Name)
		}
	}
	hint := "; rds-info -c lists them"
	if len(like) > 0 {
		hint = ": did you mean " + strings.Join(like, ", ") + "?"
	}
	return fmt.Errorf("this kernel has no counter %q%s", c.Metric.counter, hint)
}
