package info

import (
	"errors"
	"testing"
	"time"

	"github.com/rdskit/rdskit/rdsinfo"
)

func threshold(t *testing.T, text string) *Threshold {
	t.Helper()
	if text == "" {
		return nil
	}
	r, err := ParseThreshold(text)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func filter(t *testing.T, text string) Filter {
	t.Helper()
	if text == "" {
		return Filter{}
	}
	f, err := ParseFilter(text)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// The stored snapshot has conn_reset at 329, 2 of 7 connections that are not up, and 410 bytes waiting.
func TestChecksPrintTheLineOfAPlugin(t *testing.T) {
	earlier, later := readCapture(t, "uml-6.1.176-tcp"), readCapture(t, "uml-6.1.176-tcp")
	later.Time = earlier.Time.Add(2 * time.Second)
	for _, tt := range []struct {
		name                      string
		metric                    Metric
		warning, critical, filter string
		verdict                   Verdict
		want                      string
	}{
		{"a counter in its range", CounterMetric("conn_reset"), "400", "500", "", VerdictOK, "RDS OK - conn_reset is 329|conn_reset=329c;400;500;0"},
		{"a counter to warn of", CounterMetric("conn_reset"), "300", "500", "", VerdictWarning, "RDS WARNING - conn_reset is 329|conn_reset=329c;300;500;0"},
		{"critical goes before warning", CounterMetric("conn_reset"), "300", "@329", "", VerdictCritical, "RDS CRITICAL - conn_reset is 329|conn_reset=329c;300;@329;0"},
		{"a counter without ranges", CounterMetric("recv_ping"), "", "", "", VerdictOK, "RDS OK - recv_ping is 3|recv_ping=3c;;;0"},
		{"a counter that is not there", CounterMetric("reset"), "1", "", "", VerdictUnknown, `RDS UNKNOWN - this kernel has no counter "reset": did you mean conn_reset?`},
		{"the rate of a counter", RateMetric("conn_reset"), "", "1", "", VerdictOK, "RDS OK - conn_reset_per_second is 0.000|conn_reset_per_second=0.000;;1;0"},
		{"connections that are down", DownMetric(), "", "0", "", VerdictCritical,
			"RDS CRITICAL - connections_down is 2 of 7: 10.9.0.1 to 10.9.0.99 (connecting), fd00::1 to fd00::99 (connecting)|connections_down=2;;0;0"},
		{"connections to one peer", DownMetric(), "", "0", "peer=10.9.0.99", VerdictCritical,
			"RDS CRITICAL - connections_down is 1 of 1: 10.9.0.1 to 10.9.0.99 (connecting)|connections_down=1;;0;0"},
		{"connections to a peer that is up", DownMetric(), "", "0", "peer=10.9.0.2", VerdictOK, "RDS OK - connections_down is 0 of 1|connections_down=0;;0;0"},
		{"stuck connections", StuckMetric(), "", "0", "", VerdictCritical,
			"RDS CRITICAL - connections_stuck is 2: 10.9.0.1 to 10.9.0.99 (333 bytes in 1 messages), fd00::1 to fd00::99 (77 bytes in 2 messages)|connections_stuck=2;;0;0"},
		{"bytes that wait", QueueBytesMetric(), "100", "1000", "", VerdictWarning, "RDS WARNING - queue_bytes is 410|queue_bytes=410B;100;1000;0"},
		{"bytes that wait for a peer", QueueBytesMetric(), "100", "1000", "peer=fd00::/64", VerdictOK, "RDS OK - queue_bytes is 77|queue_bytes=77B;100;1000;0"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Check{Metric: tt.metric, Warning: threshold(t, tt.warning), Critical: threshold(t, tt.critical), Filter: filter(t, tt.filter)}
			f := c.Run(earlier, later)
			if f.Verdict != tt.verdict || f.String() != tt.want {
				t.Errorf("verdict %d, %q\nwant %d, %q", f.Verdict, f, tt.verdict, tt.want)
			}
		})
	}
}

func TestAnErrorIsOneLineWithoutPerformanceData(t *testing.T) {
	f := Unknown(errors.New("a | b\nc"))
	if want := "RDS UNKNOWN - a / b c"; f.String() != want || f.Verdict != VerdictUnknown {
		t.Errorf("%q, verdict %d; want %q", f, f.Verdict, want)
	}
}

func TestACheckReadsNoTableThatItDoesNotNeed(t *testing.T) {
	for _, tt := range []struct {
		metric Metric
		want   int
	}{
		{CounterMetric("x"), 1}, {RateMetric("x"), 1}, {DownMetric(), 1}, {StuckMetric(), 3}, {QueueBytesMetric(), 2},
	} {
		if got := tt.metric.Tables(); len(got) != tt.want {
			t.Errorf("%+v reads %v", tt.metric, got)
		}
	}
	c := Check{Metric: DownMetric()}
	if f := c.Run(&rdsinfo.Snapshot{}, &rdsinfo.Snapshot{}); f.Verdict != VerdictUnknown {
		t.Errorf("without tables: %v", f)
	}
}
