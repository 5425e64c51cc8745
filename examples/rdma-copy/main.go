// Command rdma-copy copies a file from another host by RDMA reads.
//
//	rdma-copy serve 10.8.0.1:4000 FILE     # on the host that has the file
//	rdma-copy fetch 10.8.0.1:4000 COPY     # on the other
//
// The server keeps a window of the file in registered memory. The client asks for
// it by message, is told the keys, reads the memory while the server does nothing,
// checks it, and asks for the next. There is one window: other clients wait until
// the file is copied.
package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

// window is how much of the file is in memory at a time, in bytes.
const window = 16 << 20

// patience is for how long the other side may be silent. A device takes some 5 s to
// find out that a connection is broken, and the kernel about as long to make it
// anew.
const patience = 45 * time.Second

// A request asks for the file from an offset, or for nothing more.
type request struct {
	Offset int64
	Done   bool
}

// A reply describes what is in the server's memory now.
type reply struct {
	Offset   int64
	Size     int64  // of the file
	Modified int64  // when the file was, in ns since 1970
	Remote   []byte // an rdma.Remote; none at the end of the file
	Sum      []byte // SHA-256 of the window
	Busy     bool   // with another client: ask again
	Error    string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "rdma-copy:", err)
		stop()
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: rdma-copy serve ADDRESS:PORT FILE\n       rdma-copy [-from ADDRESS] fetch ADDRESS:PORT COPY")
		flag.PrintDefaults()
	}
	cfg := &rdssock.Config{Transport: rdssock.TransportInfiniBand}
	flag.Func("from", "local `address` to fetch from, if the route does not decide it", func(s string) error {
		local, err := netip.ParseAddr(s)
		cfg.LocalAddr = netip.AddrPortFrom(local, 0)
		return err
	})
	flag.Parse()
	if verb := flag.Arg(0); flag.NArg() != 3 || verb != "serve" && verb != "fetch" {
		flag.Usage()
		os.Exit(2)
	}
	server, err := netip.ParseAddrPort(flag.Arg(1))
	if err != nil || server.Port() == 0 {
		return fmt.Errorf("%q is no address and port: want one such as 10.8.0.1:4000", flag.Arg(1))
	}
	if flag.Arg(0) == "serve" {
		return serve(ctx, server, cfg, flag.Arg(2))
	}
	return fetch(ctx, server, cfg, flag.Arg(2))
}

// A memory is a window on one side, and the socket that it is used on.
type memory struct {
	conn   *rdma.Conn
	region *rdma.Region
}

func newMemory(sock *rdssock.Conn, err error) (*memory, error) {
	if err != nil {
		return nil, err
	}
	conn, err := rdma.New(sock, nil)
	if err != nil {
		sock.Close()
		return nil, err
	}
	region, err := rdma.Allocate(window)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return &memory{conn, region}, nil
}

// close closes the socket first, which ends what uses the memory even if the peer is dead.
func (m *memory) close() {
	m.conn.Close()
	m.region.Close(context.Background())
}

// A server has one file, and one client at a time.
type server struct {
	*memory
	file         *os.File
	registration rdma.Registration
	client       netip.AddrPort // whose window is in the memory
	heard        time.Time      // when it last asked
}

func serve(ctx context.Context, address netip.AddrPort, cfg *rdssock.Config, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return errors.Join(err, fmt.Errorf("%s is no regular file", name))
	}
	m, err := newMemory(rdssock.Listen(address, cfg))
	if err != nil {
		return err
	}
	defer m.close()
	s := &server{memory: m, file: file, registration: rdma.Registration{Memory: m.region.All()}}
	// It stays registered for all clients.
	if err := m.conn.Register(ctx, &s.registration, address); err != nil {
		return err
	}
	b := make([]byte, 1024)
	for {
		n, _, client, err := m.conn.Receive(ctx, b)
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
			continue // the empty message that follows the client's reads, for one
		}
		if req.Done {
			if client == s.client {
				s.client = netip.AddrPort{}
			}
			continue
		}
		// A client that is gone is no reason to end.
		if err := s.answer(ctx, req, client); err != nil {
			fmt.Fprintln(os.Stderr, "rdma-copy:", err)
		}
	}
}

func (s *server) answer(ctx context.Context, req request, client netip.AddrPort) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	rep := reply{Offset: req.Offset}
	if s.client.IsValid() && s.client != client && time.Since(s.heard) < patience {
		rep.Busy = true
	} else if err := s.load(&rep); err != nil {
		rep.Error = err.Error()
	} else {
		s.client, s.heard = client, time.Now()
	}
	message, err := json.Marshal(rep)
	if err != nil {
		return err
	}
	_, _, err = s.conn.Socket().WriteMsgContext(ctx, message, nil, client)
	return err
}

// load brings the file from the reply's offset into the memory.
func (s *server) load(rep *reply) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	rep.Size, rep.Modified = info.Size(), info.ModTime().UnixNano()
	n, err := s.file.ReadAt(s.region.Bytes(), rep.Offset)
	if n == 0 || err != nil && err != io.EOF {
		if err == io.EOF {
			err = nil
		}
		return err
	}
	remote, err := s.registration.Remote()
	if err != nil {
		return err
	}
	remote.Len, remote.Keys = int64(n), remote.Keys[:(n-1)/rdma.MaxOperation+1]
	sum := sha256.Sum256(s.region.Bytes()[:n])
	rep.Sum = sum[:]
	rep.Remote, err = remote.MarshalBinary()
	return err
}

// fetch copies to a file of its own beside name, which takes its place when it is whole.
func fetch(ctx context.Context, address netip.AddrPort, cfg *rdssock.Config, name string) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is no regular file", name)
	}
	part, err := os.OpenFile(name+".part", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return err
	}
	defer os.Remove(part.Name())
	defer part.Close()
	m, err := newMemory(rdssock.Dial(address, cfg))
	if err != nil {
		return err
	}
	defer m.close()
	c := &client{memory: m, server: address}
	whole := sha256.New()
	began := time.Now()
	err = c.fetch(ctx, io.MultiWriter(part, whole))
	c.leave()
	if c.progress {
		fmt.Fprintln(os.Stderr)
	}
	if err != nil {
		return err
	}
	if err := part.Close(); err != nil {
		return err
	}
	if err := os.Rename(part.Name(), name); err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "copied in %v\n", time.Since(began).Round(time.Millisecond))
	fmt.Printf("%x  %s\n", whole.Sum(nil), name)
	return nil
}

// A client reads the file of a server.
type client struct {
	*memory
	server   netip.AddrPort
	progress bool // was told
}

// errOther says that the memory has something else than what was asked for, which
// is another client's.
var errOther = errors.New("what was read has another checksum")

// fetch writes the file to w. The kernel makes a broken connection anew, but never
// repeats an operation; a server that was started anew has other keys. So what
// failed is asked for again.
func (c *client) fetch(ctx context.Context, w io.Writer) error {
	var first reply
	for offset, moved := int64(0), time.Now(); ; {
		rep, err := c.ask(ctx, offset)
		if err != nil {
			return err
		}
		if offset == 0 {
			first = rep
		}
		switch end := len(rep.Remote) == 0; {
		case rep.Size != first.Size || rep.Modified != first.Modified || end && offset != rep.Size:
			return fmt.Errorf("the file of %v changed while it was copied", c.server)
		case end:
			return nil
		}
		b, err := c.read(ctx, &rep)
		switch {
		case err == nil:
		case time.Since(moved) < patience && (errors.Is(err, rdma.ErrDropped) || errors.Is(err, rdma.ErrFailed) ||
			errors.Is(err, rdma.ErrRemoteAccess) || errors.Is(err, errOther)):
			continue
		default:
			return err
		}
		if _, err := w.Write(b); err != nil {
			return err
		}
		offset, moved = offset+int64(len(b)), time.Now()
	}
}

// leave has the server give its memory to others, which it does after a while
// without a word as well.
func (c *client) leave() {
	if message, err := json.Marshal(request{Done: true}); err == nil {
		_, _ = c.conn.Socket().TryWriteToAddrPort(message, c.server)
	}
}

// read reads what a reply describes.
func (c *client) read(ctx context.Context, rep *reply) ([]byte, error) {
	var remote rdma.Remote
	if err := remote.UnmarshalBinary(rep.Remote); err != nil {
		return nil, err
	}
	if remote.Len > window || remote.Len > rep.Size-rep.Offset {
		return nil, fmt.Errorf("%v offers %d bytes of %d from %d", c.server, remote.Len, rep.Size, rep.Offset)
	}
	// Of a host that died the kernel reports nothing.
	ctx, cancel := context.WithTimeoutCause(ctx, patience, fmt.Errorf("%v no longer answers", c.server))
	defer cancel()
	local := c.region.Slice(0, int(remote.Len))
	err := c.conn.Read(ctx, &rdma.Transfer{
		Peer: c.server, Remote: remote, Local: []rdma.Slice{local},
		Progress: func(moved int64) {
			fmt.Fprintf(os.Stderr, "\r%3d%% of %d bytes", (rep.Offset+moved)*100/rep.Size, rep.Size)
			c.progress = true
		},
	})
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, err
	}
	if sum := sha256.Sum256(local.Bytes()); !bytes.Equal(sum[:], rep.Sum) {
		return nil, fmt.Errorf("%w, from offset %d", errOther, rep.Offset)
	}
	return local.Bytes(), nil
}

// ask asks for the file from an offset until the server answers. A message to a
// server that is not there yet is lost without a word, so it asks again.
func (c *client) ask(ctx context.Context, offset int64) (reply, error) {
	message, err := json.Marshal(request{Offset: offset})
	if err != nil {
		return reply{}, err
	}
	failure := fmt.Errorf("%v does not answer", c.server)
	for began := time.Now(); time.Since(began) < patience; {
		rep, err := c.hear(ctx, message, offset)
		switch {
		case err == nil && rep.Busy:
			failure = fmt.Errorf("%v is busy with another client: try again later", c.server)
			select {
			case <-ctx.Done():
				return reply{}, ctx.Err()
			case <-time.After(time.Second):
			}
		case !errors.Is(err, context.DeadlineExceeded):
			return rep, err
		}
	}
	return reply{}, failure
}

// hear sends a request and waits a second for the answer about an offset.
func (c *client) hear(ctx context.Context, message []byte, offset int64) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if _, _, err := c.conn.Socket().WriteMsgContext(ctx, message, nil, c.server); err != nil {
		return reply{}, err
	}
	b := make([]byte, 64<<10)
	for {
		n, _, src, err := c.conn.Receive(ctx, b)
		if err != nil && !errors.Is(err, rdssock.ErrTruncated) {
			return reply{}, err
		}
		var rep reply
		switch {
		case src != c.server || err != nil || json.Unmarshal(b[:n], &rep) != nil:
		case rep.Error != "":
			return reply{}, fmt.Errorf("%v: %s", c.server, rep.Error)
		case rep.Offset == offset:
			return rep, nil
		}
	}
}
