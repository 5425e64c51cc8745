package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rdskit/rdskit/internal/stress"
	"github.com/rdskit/rdskit/rdsinfo"
)

// perfdata is --show-perfdata: comma-separated lines that begin with ::, under the names of C. C has a value
// more than names, since it prints RDMA in and out apart, so that all from tx_delay on stand under the name before theirs. Here thruput_rdma
// is the sum of both.
type perfdata struct {
	names []string
	last  map[string]uint64
	at    time.Time
}

func (p *perfdata) header(w io.Writer) {
	fmt.Fprint(w, "::nr_tasks:count,req_size:bytes,ack_size:bytes,rdma_size:bytes,req_sent:count,thruput:kB/s,thruput_rdma:kB/s,tx_delay:microseconds,rtt:microseconds,cpu:percent")
	p.last = map[string]uint64{}
	for _, c := range p.read() {
		p.names = append(p.names, c.Name)
		p.last[c.Name] = c.Value
		unit := "count"
		if strings.Contains(c.Name, "_bytes") {
			unit = "bytes"
		}
		fmt.Fprintf(w, ",%s:%s", c.Name, unit)
	}
	p.at = time.Now()
	fmt.Fprint(w, ",user:percent,system:percent,idle:percent,irq:percent,intr:count\n")
}

// read returns the kernel's counters, none if they cannot be read.
func (p *perfdata) read() []rdsinfo.Counter {
	s, err := rdsinfo.Read(nil, rdsinfo.Counters)
	if err != nil {
		return nil
	}
	counters, err := s.Counters()
	if err != nil {
		return nil
	}
	return counters
}

func (p *perfdata) row(w io.Writer, c *stress.Config, s *stress.Sample) {
	per := 1 / max(s.Elapsed.Seconds(), 1e-9)
	cpu := 0.0
	if s.Processors != nil {
		cpu = s.Processors.Busy()
	}
	fmt.Fprintf(w, "::%d,%d,%d,%d,%d,%f,%f,%f,%f,%f", c.Tasks, c.Shape.ReqSize, c.Shape.AckSize, c.RDMA.Size, s.RequestsSent,
		per*float64(s.Bytes())/kib, per*float64(s.RDMAInBytes+s.RDMAOutBytes)/kib, usec(s.MeanSendTime()), usec(s.MeanRTT()), cpu)
	now := time.Now()
	scale := 1 / max(now.Sub(p.at).Seconds(), 1e-9)
	p.at = now
	values := map[string]uint64{}
	for _, c := range p.read() {
		values[c.Name] = c.Value
	}
	for _, name := range p.names {
		fmt.Fprintf(w, ",%f", scale*float64(values[name]-p.last[name]))
	}
	p.last = values
	if d := s.Processors; d != nil {
		fmt.Fprintf(w, ",%f,%f,%f,%f,%d", d.Share(d.User+d.Nice), d.Share(d.System), d.Share(d.Idle+d.IOWait), d.Share(d.IRQ+d.SoftIRQ), d.Interrupts)
	}
	fmt.Fprintln(w)
}
