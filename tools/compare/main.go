// Compare runs two programs in turn and compares what it measures of them:
//
//	compare [-measure WHAT] [-pairs N] [-sockets N] [-connections N] OURS THEIRS -- ARGUMENTS
//
// WHAT is "round-trips" that they print as rds-ping does, the "processor" time or the "elapsed"
// time of a run, or the "requests" a second, sent and received, that rds-stress prints at its end. For these the
// program also runs as the side that waits, on the address -server, in the network namespace
// -netns.
//
// With -sockets and -connections it has so many RDS sockets and connections of its own while
// they run, over the loop transport.
//
// Each pair of runs gives a ratio of medians; the median of the ratios is the
// result, since what disturbs a machine for seconds disturbs both runs of a
// pair. It is a measurement, not a test: the exit status is 0 whatever the
// ratio, and 1 if a program failed or printed no figure.
package main

import (
	"bufio"
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"syscall"
	"time"
)

func main() {
	pairs := flag.Int("pairs", 9, "how many times to run both programs")
	measure := flag.String("measure", "round-trips", "what to compare: round-trips, processor, elapsed, or requests")
	var st stress
	flag.StringVar(&st.server, "server", "127.0.0.1", "the address of the side of rds-stress that waits")
	flag.StringVar(&st.netns, "netns", "", "the network namespace of that side")
	var c crowd
	flag.IntVar(&c.sockets, "sockets", 0, "have this many RDS sockets")
	flag.IntVar(&c.connections, "connections", 0, "have this many RDS connections")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: compare [-measure WHAT] [-pairs N] [-sockets N] [-connections N] OURS THEIRS -- ARGUMENTS")
		flag.PrintDefaults()
	}
	flag.Parse()
	args := flag.Args()
	run, ok := map[string]func(string, []string) (result, error){
		"round-trips": roundTrips, "processor": processorTime, "elapsed": elapsedTime, "requests": st.requests,
	}[*measure]
	if len(args) < 3 || args[2] != "--" || *pairs < 1 || !ok {
		flag.Usage()
		os.Exit(2)
	}
	err := c.open()
	if err == nil {
		err = compare(os.Stdout, run, *pairs, args[0], args[1], args[3:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

// A result is what a run of a program gave.
type result struct {
	figures []float64 // microseconds or requests a second
	memory  int64     // peak resident set in KiB, 0 if it was not measured
}

func compare(w io.Writer, run func(program string, args []string) (result, error), pairs int, ours, theirs string, args []string) error {
	fmt.Fprintf(w, "ours:   %s\ntheirs: %s\narguments: %q\n", ours, theirs, args)
	fmt.Fprintln(w, "pair   figures         medians     ratio")
	var ratios, a, b []float64
	memory := map[string]int64{}
	for i := range pairs {
		// Who goes first alternates, too.
		programs := [2]string{ours, theirs}
		if i%2 == 1 {
			programs = [2]string{theirs, ours}
		}
		runs := map[string][]float64{}
		for _, p := range programs {
			r, err := run(p, args)
			if err != nil {
				return err
			}
			runs[p] = r.figures
			memory[p] = max(memory[p], r.memory)
		}
		o, t := median(runs[ours]), median(runs[theirs])
		a, b, ratios = append(a, o), append(b, t), append(ratios, o/t)
		fmt.Fprintf(w, "%4d  %5d %5d  %7.1f %7.1f  %6.3f\n", i+1, len(runs[ours]), len(runs[theirs]), o, t, o/t)
	}
	fmt.Fprintf(w, "median of the medians: ours %.1f, theirs %.1f\n", median(a), median(b))
	if memory[ours] > 0 {
		fmt.Fprintf(w, "most memory: ours %d KiB, theirs %d KiB\n", memory[ours], memory[theirs])
	}
	fmt.Fprintf(w, "median of the ratios: %.3f (%.3f to %.3f)\n", median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// roundTrips returns those that a program prints, in microseconds.
func roundTrips(program string, args []string) (result, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return result{}, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	trips, err := parse(out)
	if err != nil {
		return result{}, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	return result{figures: trips}, nil
}

// processorTime returns how much processor time a program takes from its start to its end, in
// the kernel too. That does not depend on what else the machine does.
func processorTime(program string, args []string) (result, error) {
	return timed(program, args, func(p *os.ProcessState, _ time.Duration) time.Duration {
		return p.UserTime() + p.SystemTime()
	})
}

// elapsedTime returns how long a program runs.
func elapsedTime(program string, args []string) (result, error) {
	return timed(program, args, func(_ *os.ProcessState, elapsed time.Duration) time.Duration { return elapsed })
}

func timed(program string, args []string, which func(*os.ProcessState, time.Duration) time.Duration) (result, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	start := time.Now()
	if err := cmd.Run(); err != nil {
		return result{}, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	spent := which(cmd.ProcessState, time.Since(start))
	r := result{figures: []float64{float64(spent.Nanoseconds()) / 1000}}
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		r.memory = int64(u.Maxrss)
	}
	return r, nil
}

var reply = regexp.MustCompile(`^ *\d+: (\d+) usec`)

func parse(out []byte) (trips []float64, err error) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := reply.FindSubmatch(lines.Bytes()); m != nil {
			usec, err := strconv.ParseFloat(string(m[1]), 64)
			if err != nil {
				return nil, err
			}
			trips = append(trips, usec)
		}
	}
	if trips == nil {
		return nil, errors.New("it printed no round trip")
	}
	return trips, nil
}

// median of what is not empty.
func median(x []float64) float64 {
	x = slices.Sorted(slices.Values(x))
	return (x[(len(x)-1)/2] + x[len(x)/2]) / 2
}
