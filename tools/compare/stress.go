package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// A stress is where the two sides of an rds-stress are.
type stress struct {
	server, netns string
	runs          int
}

// The first port of a run; each has its own, since sockets of the one before may linger.
const firstPort = 4100

// requests returns the requests that an rds-stress sent and received a second, on the average of its run: who sends more of them
// than the other differs from program to program.
func (s *stress) requests(program string, args []string) (result, error) {
	at := []string{"-p", strconv.Itoa(firstPort + 100*s.runs)}
	s.runs++
	command := append([]string{program, "-r", s.server}, at...)
	if s.netns != "" {
		command = append([]string{"ip", "netns", "exec", s.netns}, command...)
	}
	passive := exec.Command(command[0], command[1:]...)
	passive.Stderr = os.Stderr
	waits, err := passive.StdoutPipe()
	if err != nil {
		return result{}, err
	}
	if err := passive.Start(); err != nil {
		return result{}, err
	}
	ended := make(chan error, 1)
	ready := make(chan struct{})
	go func() {
		for lines := bufio.NewScanner(waits); ; {
			if !lines.Scan() {
				break
			}
			if strings.HasPrefix(lines.Text(), "waiting for incoming connection") {
				close(ready)
				break
			}
		}
		io.Copy(io.Discard, waits)
		ended <- passive.Wait()
	}()
	select {
	case <-ready:
	case err := <-ended:
		return result{}, fmt.Errorf("%v: ended before it waited: %w", passive.Args, err)
	}
	active := exec.Command(program, append(append([]string{"-s", s.server}, at...), args...)...)
	active.Stderr = os.Stderr
	out, err := active.Output()
	if err != nil {
		passive.Process.Kill()
		<-ended
		return result{}, fmt.Errorf("%v: %w", active.Args, err)
	}
	if err := <-ended; err != nil {
		return result{}, fmt.Errorf("%v: %w", passive.Args, err)
	}
	rate, err := parseAverage(out)
	if err != nil {
		return result{}, fmt.Errorf("%v: %w", active.Args, err)
	}
	return result{figures: []float64{rate}}, nil
}

var average = regexp.MustCompile(`^ *\d+ +(\d+) +(\d+) .*\(average\)$`)

func parseAverage(out []byte) (float64, error) {
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := average.FindSubmatch(lines.Bytes()); m != nil {
			sent, serr := strconv.ParseFloat(string(m[1]), 64)
			received, rerr := strconv.ParseFloat(string(m[2]), 64)
			return sent + received, errors.Join(serr, rerr)
		}
	}
	return 0, errors.New("it printed no average")
}
