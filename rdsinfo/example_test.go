package rdsinfo_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/rdskit/rdskit/rdsinfo"
)

// The connections that are not up.
func Example() {
	s, err := rdsinfo.Read(nil, rdsinfo.Connections)
	if err != nil {
		log.Fatal(err)
	}
	connections, err := s.Connections()
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range connections {
		if c.State() != rdsinfo.StateUp {
			fmt.Printf("%v to %v is %v\n", c.Local, c.Remote, c.State())
		}
	}
}

// A table that comes with a module that is not loaded does not spoil the others.
func ExampleRead() {
	s, err := rdsinfo.Read(nil, rdsinfo.Counters, rdsinfo.IBConnections)
	if err != nil {
		log.Fatal(err)
	}
	counters, err := s.Counters()
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range counters {
		fmt.Println(c.Name, c.Value)
	}
	switch ib, err := s.IBConnections(); {
	case errors.Is(err, rdsinfo.ErrNoTable):
		fmt.Println("rds_rdma is not loaded")
	case err != nil:
		log.Fatal(err)
	default:
		fmt.Println(len(ib), "connections over InfiniBand or RoCE")
	}
}

func ExampleCompare() {
	tables := []rdsinfo.Table{rdsinfo.Counters, rdsinfo.Connections, rdsinfo.SendQueue, rdsinfo.RetransmitQueue}
	before, err := rdsinfo.Read(nil, tables...)
	if err != nil {
		log.Fatal(err)
	}
	time.Sleep(time.Second)
	after, err := rdsinfo.Read(nil, tables...)
	if err != nil {
		log.Fatal(err)
	}
	d := rdsinfo.Compare(before, after)
	for _, c := range d.Counters {
		if c.Moved.Value > 0 {
			fmt.Printf("%s: %v/s\n", c.Name, d.Rate(c))
		}
	}
	for _, c := range d.Connections {
		if c.Stuck {
			fmt.Printf("%v to %v: nothing of %d bytes was acknowledged\n", c.Local, c.Remote, c.Waiting.Bytes)
		}
	}
}

func ExampleCollect() {
	b, err := rdsinfo.Collect(context.Background(), nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := b.Write(os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func ExampleReadBundle() {
	f, err := os.Open("testdata/bundle.json")
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	b, err := rdsinfo.ReadBundle(f)
	if err != nil {
		log.Fatal(err)
	}
	sockets, err := b.Snapshot.Sockets()
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range sockets {
		fmt.Println(b.Host, "has a socket at", s.Bound)
	}
	// Output:
	// db1 has a socket at 10.9.0.1:4800
}

func ExampleProcesses() {
	s, err := rdsinfo.Read(nil, rdsinfo.Sockets)
	if err != nil {
		log.Fatal(err)
	}
	sockets, err := s.Sockets()
	if err != nil {
		log.Fatal(err)
	}
	processes, unseen, err := rdsinfo.Processes()
	if err != nil {
		log.Fatal(err)
	}
	for _, s := range sockets {
		for _, p := range processes[s.Inode] {
			fmt.Printf("%v: %s, process %d\n", s.Bound, p.Command, p.PID)
		}
	}
	if unseen > 0 {
		fmt.Println("processes of other users were not seen")
	}
}
