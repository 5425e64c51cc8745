// Command rdma-kv is a small key-value server. Small values go in messages, large ones by
// RDMA: the server writes them into the client's memory, or reads them from there.
//
//	rdma-kv serve 10.8.0.1:4100
//	rdma-kv put 10.8.0.1:4100 KEY <FILE
//	rdma-kv get 10.8.0.1:4100 KEY >FILE
//
// The client offers its memory with the request, and the message that follows the operation is
// the answer: when the client reads it, the value is there.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

const (
	maxValue = rdma.MaxOperation // one key covers it
	inline   = 4096              // up to which a value goes in the message

	// patience is for how long the other side may be silent. A device takes some 5 s to find out that a connection is
	// broken, and the kernel about as long to make it anew.
	patience = 45 * time.Second
)

// A request is what a client sends. Its memory, of Size bytes, is offered along with it unless the value is in
// it.
type request struct {
	Op    string // hello, put or get
	Key   string
	Size  int    // of the value to put, or of the room for the one to get
	Value []byte `json:",omitempty"`
}

// A reply follows the operation.
type reply struct {
	Op    string // of the request
	Size  int
	Value []byte `json:",omitempty"` // unless it was written into the client's memory
	Error string `json:",omitempty"`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := start(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rdma-kv:", err)
		stop()
		os.Exit(1)
	}
}

func start(ctx context.Context) error {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: rdma-kv serve ADDRESS:PORT\n       rdma-kv [-from ADDRESS] put|get ADDRESS:PORT KEY")
		flag.PrintDefaults()
	}
	from := flag.String("from", "", "local `address` of the client, if the route does not decide it")
	flag.Parse()
	if flag.NArg() < 2 {
		flag.Usage()
		os.Exit(2)
	}
	address, err := netip.ParseAddrPort(flag.Arg(1))
	if err != nil {
		return err
	}
	cfg := &rdssock.Config{Transport: rdssock.TransportInfiniBand}
	var sock *rdssock.Conn
	if flag.Arg(0) == "serve" {
		sock, err = rdssock.Listen(address, cfg)
	} else {
		if *from != "" {
			local, err := netip.ParseAddr(*from)
			if err != nil {
				return err
			}
			cfg.LocalAddr = netip.AddrPortFrom(local, 0)
		}
		sock, err = rdssock.Dial(address, cfg)
	}
	if err != nil {
		return err
	}
	conn, err := rdma.New(sock, nil)
	if err != nil {
		sock.Close()
		return err
	}
	defer conn.Close()
	if flag.Arg(0) == "serve" {
		return serve(ctx, conn)
	}
	if err := hello(ctx, conn, address); err != nil {
		return err
	}
	switch flag.Arg(0) {
	case "put":
		value, err := io.ReadAll(io.LimitReader(os.Stdin, maxValue+1))
		if err != nil {
			return err
		}
		return put(ctx, conn, address, flag.Arg(2), value)
	case "get":
		value, err := get(ctx, conn, address, flag.Arg(2))
		if err != nil {
			return err
		}
		_, err = os.Stdout.Write(value)
		return err
	}
	return fmt.Errorf("%q is none of serve, put and get", flag.Arg(0))
}

// A server answers one request after the other.
type server struct {
	conn    *rdma.Conn
	scratch *rdma.Region // where values are on their way
	values  map[string][]byte
}

func serve(ctx context.Context, conn *rdma.Conn) error {
	scratch, err := rdma.Allocate(maxValue)
	if err != nil {
		return err
	}
	defer scratch.Close(ctx)
	s := &server{conn, scratch, make(map[string][]byte)}
	b := make([]byte, 64<<10)
	for {
		n, key, client, err := conn.Receive(ctx, b)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		var req request
		if json.Unmarshal(b[:n], &req) != nil {
			continue
		}
		// A client that is gone, or offers nonsense, is no reason to end.
		if err := s.answer(ctx, req, key, client); err != nil {
			fmt.Fprintf(os.Stderr, "rdma-kv: %s of %q for %v: %v\n", req.Op, req.Key, client, err)
		}
	}
}

func (s *server) answer(ctx context.Context, req request, key cmsg.Key, client netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case req.Op == "hello":
		return s.reply(ctx, reply{Op: req.Op}, client)
	case req.Op == "put" && len(req.Value) > 0, req.Op == "put" && req.Size == 0:
		s.values[req.Key] = req.Value
		return s.reply(ctx, reply{Op: req.Op, Size: len(req.Value)}, client)
	case req.Op == "put" && key != 0 && 0 < req.Size && req.Size <= maxValue:
		memory := s.scratch.Slice(0, req.Size)
		op := rdma.Operation{Peer: client, Key: key, Local: []rdma.Slice{memory}, Silent: true}
		if err := again(ctx, func() error { return run(ctx, s.conn.StartRead, &op) }); err != nil {
			return err
		}
		s.values[req.Key] = append([]byte(nil), memory.Bytes()...)
		return s.reply(ctx, reply{Op: req.Op, Size: req.Size}, client)
	case req.Op == "get":
		value, ok := s.values[req.Key]
		switch {
		case !ok:
			return s.reply(ctx, reply{Op: req.Op, Error: "no such key"}, client)
		case len(value) <= inline:
			return s.reply(ctx, reply{Op: req.Op, Size: len(value), Value: value}, client)
		case key == 0 || len(value) > req.Size:
			return s.reply(ctx, reply{Op: req.Op, Error: fmt.Sprintf("the value has %d bytes, and there is room for %d", len(value), req.Size)}, client)
		}
		message, err := json.Marshal(reply{Op: req.Op, Size: len(value)})
		if err != nil {
			return err
		}
		memory := s.scratch.Slice(0, len(value))
		copy(memory.Bytes(), value)
		op := rdma.Operation{Peer: client, Key: key, Local: []rdma.Slice{memory}, Payload: message}
		return again(ctx, func() error { return run(ctx, s.conn.StartWrite, &op) })
	}
	return s.reply(ctx, reply{Op: req.Op, Error: "unknown request"}, client)
}

// run runs an operation to its end.
func run(ctx context.Context, start func(context.Context, *rdma.Operation) error, op *rdma.Operation) error {
	if err := start(ctx, op); err != nil {
		return err
	}
	return op.Wait(ctx)
}

// again repeats what failed because a connection broke. The kernel makes that anew, within seconds if the device
// has to find out by itself, but never repeats an operation.
func again(ctx context.Context, f func() error) error {
	for {
		err := f()
		if !errors.Is(err, rdma.ErrDropped) && !errors.Is(err, rdma.ErrFailed) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *server) reply(ctx context.Context, rep reply, client netip.AddrPort) error {
	message, err := json.Marshal(rep)
	if err != nil {
		return err
	}
	_, _, err = s.conn.Socket().WriteMsgContext(ctx, message, nil, client)
	return err
}

func put(ctx context.Context, conn *rdma.Conn, server netip.AddrPort, key string, value []byte) error {
	if len(value) > maxValue {
		return fmt.Errorf("the value has more than %d bytes", maxValue)
	}
	req := request{Op: "put", Key: key, Size: len(value)}
	if len(value) <= inline {
		req.Value = value
		_, err := ask(ctx, conn, server, req, nil)
		return err
	}
	region, err := rdma.Allocate(len(value))
	if err != nil {
		return err
	}
	defer region.Close(ctx)
	copy(region.Bytes(), value)
	_, err = ask(ctx, conn, server, req, &rdma.Registration{Memory: region.All()})
	return err
}

func get(ctx context.Context, conn *rdma.Conn, server netip.AddrPort, key string) ([]byte, error) {
	region, err := rdma.Allocate(maxValue)
	if err != nil {
		return nil, err
	}
	defer region.Close(ctx)
	rep, err := ask(ctx, conn, server, request{Op: "get", Key: key, Size: region.Len()}, &rdma.Registration{Memory: region.All()})
	if err != nil {
		return nil, err
	}
	if rep.Size == len(rep.Value) {
		return rep.Value, nil
	}
	value := make([]byte, min(max(rep.Size, 0), region.Len()))
	_, err = region.ReadAt(value, 0)
	return value, err
}

// hello waits for the server. A message to one that is not there yet is lost without a word.
func hello(ctx context.Context, conn *rdma.Conn, server netip.AddrPort) error {
	for began := time.Now(); time.Since(began) < patience; {
		within, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
		_, err := ask(within, conn, server, request{Op: "hello"}, nil)
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	return fmt.Errorf("%v does not answer", server)
}

// ask sends a request, with memory on offer or without, and waits for the answer.
func ask(ctx context.Context, conn *rdma.Conn, server netip.AddrPort, req request, memory *rdma.Registration) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	message, err := json.Marshal(req)
	if err != nil {
		return reply{}, err
	}
	if memory != nil {
		err = conn.Offer(ctx, memory, message, server)
	} else {
		_, _, err = conn.Socket().WriteMsgContext(ctx, message, nil, server)
	}
	if err != nil {
		return reply{}, err
	}
	b := make([]byte, 64<<10)
	for {
		n, _, src, err := conn.Receive(ctx, b)
		if err != nil {
			return reply{}, err
		}
		var rep reply
		if src != server || json.Unmarshal(b[:n], &rep) != nil || rep.Op != req.Op {
			continue
		}
		if rep.Error != "" {
			return reply{}, fmt.Errorf("%v: %s", server, rep.Error)
		}
		return rep, nil
	}
}
