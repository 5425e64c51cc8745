// Compare runs two rds-ping programs in turn and compares the round trips they
// print:
//
//	compare [-pairs N] OURS THEIRS -- ARGUMENTS
//
// Each pair of runs gives a ratio of medians; the median of the ratios is the
// result, since what disturbs a machine for seconds disturbs both runs of a
// pair. It is a measurement, not a test: the exit status is 0 whatever the
// ratio, and 1 if a program failed or printed no round trip.
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
)

func main() {
	pairs := flag.Int("pairs", 9, "how many times to run both programs")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: compare [-pairs N] OURS THEIRS -- ARGUMENTS")
		flag.PrintDefaults()
	}
	flag.Parse()
	args := flag.Args()
	if len(args) < 3 || args[2] != "--" || *pairs < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := compare(os.Stdout, *pairs, args[0], args[1], args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, "compare:", err)
		os.Exit(1)
	}
}

func compare(w io.Writer, pairs int, ours, theirs string, args []string) error {
	fmt.Fprintf(w, "ours:   %s\ntheirs: %s\narguments: %q\n", ours, theirs, args)
	fmt.Fprintln(w, "pair  replies      median usec     ratio")
	var ratios, a, b []float64
	for i := range pairs {
		// Who goes first alternates, too.
		programs := [2]string{ours, theirs}
		if i%2 == 1 {
			programs = [2]string{theirs, ours}
		}
		runs := map[string][]float64{}
		for _, p := range programs {
			trips, err := run(p, args)
			if err != nil {
				return err
			}
			runs[p] = trips
		}
		o, t := median(runs[ours]), median(runs[theirs])
		a, b, ratios = append(a, o), append(b, t), append(ratios, o/t)
		fmt.Fprintf(w, "%4d  %5d %5d  %7.1f %7.1f  %6.3f\n", i+1, len(runs[ours]), len(runs[theirs]), o, t, o/t)
	}
	fmt.Fprintf(w, "median of the medians: ours %.1f usec, theirs %.1f usec\n", median(a), median(b))
	fmt.Fprintf(w, "median of the ratios: %.3f (%.3f to %.3f)\n", median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// run returns the round trips that a program prints, in microseconds.
func run(program string, args []string) ([]float64, error) {
	cmd := exec.Command(program, args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	trips, err := parse(out)
	if err != nil {
		return nil, fmt.Errorf("%v: %w", cmd.Args, err)
	}
	return trips, nil
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
