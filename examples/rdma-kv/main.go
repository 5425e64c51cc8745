// Command rdma-kv is a small key-value server. Small values go in messages, large
// ones by RDMA: the server writes them into the client's memory, or reads them from
// there.
//
//	rdma-kv serve 10.8.0.1:4100
//	rdma-kv put 10.8.0.1:4100 KEY <FILE
//	rdma-kv get 10.8.0.1:4100 KEY >FILE
//
// The client offers its memory with the request, and the message that follows the
// operation is the answer: when the client reads it, the value is there.
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
	"slices"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

const (
	maxValue = rdma.MaxOperation // one key covers it
	inline   = 4096              // up to which a value goes in the message
	maxAll   = 256 << 20         // of all values and keys that a server has, in bytes

	// patience is for how long the other side may be silent. A device takes some 5
	// s to find out that a connection is broken, and the kernel about as long to
	// make it anew.
	patience = 45 * time.Second
)

// A request is what a client sends. Its memory, of Size bytes, is offered along
// with it unless the value is in it.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
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
	cfg := &rdssock.Config{Transport: rdssock.TransportInfiniBand}
	flag.Func("from", "local `address` of the client, if the route does not decide it", func(s string) error {
		local, err := netip.ParseAddr(s)
		cfg.LocalAddr = netip.AddrPortFrom(local, 0)
		return err
	})
	flag.Parse()
	verb, key := flag.Arg(0), flag.Arg(2)
	if operands, ok := map[string]int{"serve": 2, "put": 3, "get": 3}[verb]; !ok || flag.NArg() != operands {
		flag.Usage()
		os.Exit(2)
	}
	address, err := netip.ParseAddrPort(flag.Arg(1))
	if err != nil || address.Port() == 0 {
		return fmt.Errorf("%q is no address and port: want one such as 10.8.0.1:4100", flag.Arg(1))
	}
	var value []byte
	switch verb {
	case "serve":
		conn, err := open(rdssock.Listen(address, cfg))
		if err != nil {
			return err
		}
		s, err := newServer(conn)
		if err != nil {
			conn.Close()
			return err
		}
		defer s.close()
		return s.serve(ctx)
	case "put":
		if value, err = io.ReadAll(io.LimitReader(os.Stdin, maxValue+1)); err != nil {
			return err
		}
		if len(value) > maxValue {
			return fmt.Errorf("the value has more than %d bytes", maxValue)
		}
	}
	conn, err := open(rdssock.Dial(address, cfg))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := hello(ctx, conn, address); err != nil {
		return err
	}
	if verb == "put" {
		return put(ctx, conn, address, key, value)
	}
	if value, err = get(ctx, conn, address, key); err != nil {
		return err
	}
	_, err = os.Stdout.Write(value)
	return err
}

func open(sock *rdssock.Conn, err error) (*rdma.Conn, error) {
	if err != nil {
		return nil, err
	}
	conn, err := rdma.New(sock, nil)
	if err != nil {
		sock.Close()
	}
	return conn, err
}

// A server answers one request after the other.
type server struct {
	conn     *rdma.Conn
	patience time.Duration // with a client
	scratch  *rdma.Region  // where values are on their way
	values   map[string][]byte
	size     int // of all values and keys
}

func newServer(conn *rdma.Conn) (*server, error) {
	scratch, err := rdma.Allocate(maxValue)
	if err != nil {
		return nil, err
	}
	return &server{conn: conn, patience: patience, scratch: scratch, values: make(map[string][]byte)}, nil
}

// close closes the socket first, which ends what uses the memory even if a client is dead.
func (s *server) close() {
	s.conn.Close()
	s.scratch.Close(context.Background())
}

func (s *server) serve(ctx context.Context) error {
	b := make([]byte, 64<<10)
	for {
		n, key, client, err := s.conn.Receive(ctx, b)
		switch {
		case errors.Is(err, context.Canceled):
			return nil
		case errors.Is(err, rdssock.ErrTruncated):
			continue
		case err != nil:
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
	ctx, cancel := context.WithTimeout(ctx, s.patience)
	defer cancel()
	switch {
	case req.Op == "hello":
		return s.reply(ctx, reply{Op: req.Op}, client)
	case req.Op == "put" && (len(req.Value) > 0 || req.Size == 0):
		return s.reply(ctx, s.put(&req, req.Value), client)
	case req.Op == "put" && key != 0 && 0 < req.Size && req.Size <= maxValue:
		memory := s.scratch.Slice(0, req.Size)
		op := rdma.Operation{Peer: client, Key: key, Local: []rdma.Slice{memory}, Silent: true}
		if err := s.move(ctx, s.conn.StartRead, &op); err != nil {
			return err
		}
		return s.reply(ctx, s.put(&req, slices.Clone(memory.Bytes())), client)
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
		return s.move(ctx, s.conn.StartWrite, &op)
	}
	return s.reply(ctx, reply{Op: req.Op, Error: "unknown request"}, client)
}

// put stores a value, if there is room.
func (s *server) put(req *request, value []byte) reply {
	size := s.size + len(value)
	if old, ok := s.values[req.Key]; ok {
		size -= len(old)
	} else {
		size += len(req.Key)
	}
	if size > maxAll {
		return reply{Op: req.Op, Error: fmt.Sprintf("the server is full: it has %d bytes of %d", s.size, maxAll)}
	}
	s.values[req.Key], s.size = value, size
	return reply{Op: req.Op, Size: len(value)}
}

// attempts is how often an operation is begun. The kernel makes a broken connection
// anew, but never repeats an operation; one with a wrong key breaks it each time.
const attempts = 4

// move runs an operation to its end.
func (s *server) move(ctx context.Context, start func(context.Context, *rdma.Operation) error, op *rdma.Operation) (err error) {
	for range attempts {
		if err = start(ctx, op); err != nil {
			return err
		}
		if err = op.Wait(ctx); !errors.Is(err, rdma.ErrDropped) && !errors.Is(err, rdma.ErrFailed) {
			break
		}
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	// The client's host is dead. Canceling waits until the device has let go of the memory.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.patience)
	defer cancel()
	if s.conn.Cancel(ctx, op.Peer) == nil {
		return err
	}
	// The operation has been reported, but the device may still write. Pages that
	// are unmapped stay the kernel's until then.
	scratch, aerr := rdma.Allocate(maxValue)
	if aerr != nil {
		return errors.Join(err, aerr)
	}
	old := s.scratch
	s.scratch = scratch
	return errors.Join(err, old.Close(context.WithoutCancel(ctx)))
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
		if err != nil && !errors.Is(err, rdssock.ErrTruncated) {
			return reply{}, fmt.Errorf("no answer from %v: %w", server, err)
		}
		var rep reply
		if src != server || err != nil || json.Unmarshal(b[:n], &rep) != nil || rep.Op != req.Op {
			continue
		}
		if rep.Error != "" {
			return reply{}, fmt.Errorf("%v: %s", server, rep.Error)
		}
		return rep, nil
	}
}
