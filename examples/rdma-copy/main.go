// Command rdma-copy copies a file from another host by RDMA reads.
//
//	rdma-copy serve 10.8.0.1:4000 FILE     # on the host that has the file
//	rdma-copy fetch 10.8.0.1:4000 COPY     # on the other
//
// The server keeps a window of the file in registered memory. The client asks for it by message, is
// told the keys, reads the memory while the server does nothing, checks it, and asks for the next.
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
	"time"

	"github.com/rdskit/rdskit/rdma"
	"github.com/rdskit/rdskit/rdssock"
)

// window is how much of the file is in memory at a time, in bytes.
const window = 16 << 20

// patience is for how long a server may be silent. A device takes some 5 s to find out that a connection is broken,
// and the kernel about as long to make it anew.
const patience = 45 * time.Second

// A request asks for the file from an offset.
type request struct {
	Offset int64
}

// A reply describes what is in the server's memory now.
type reply struct {
	Offset int64
	Size   int64  // of the file
	Remote []byte // an rdma.Remote; none at the end of the file
	Sum    []byte // SHA-256 of the window
	Error  string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
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
	from := flag.String("from", "", "local `address` to fetch from, if the route does not decide it")
	flag.Parse()
	if flag.NArg() != 3 {
		flag.Usage()
		os.Exit(2)
	}
	server, err := netip.ParseAddrPort(flag.Arg(1))
	if err != nil {
		return err
	}
	cfg := &rdssock.Config{Transport: rdssock.TransportInfiniBand}
	switch flag.Arg(0) {
	case "serve":
		sock, err := rdssock.Listen(server, cfg)
		if err != nil {
			return err
		}
		return withRDMA(sock, func(conn *rdma.Conn) error { return serve(ctx, conn, flag.Arg(2)) })
	case "fetch":
		if *from != "" {
			local, err := netip.ParseAddr(*from)
			if err != nil {
				return err
			}
			cfg.LocalAddr = netip.AddrPortFrom(local, 0)
		}
		sock, err := rdssock.Dial(server, cfg)
		if err != nil {
			return err
		}
		return withRDMA(sock, func(conn *rdma.Conn) error { return fetch(ctx, conn, server, flag.Arg(2)) })
	}
	return fmt.Errorf("%q is neither serve nor fetch", flag.Arg(0))
}

func withRDMA(sock *rdssock.Conn, f func(*rdma.Conn) error) error {
	conn, err := rdma.New(sock, nil)
	if err != nil {
		sock.Close()
		return err
	}
	defer conn.Close()
	return f(conn)
}

func serve(ctx context.Context, conn *rdma.Conn, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	region, err := rdma.Allocate(window)
	if err != nil {
		return err
	}
	defer region.Close(ctx)
	memory := rdma.Registration{Memory: region.All()}
	b := make([]byte, 1024)
	for {
		n, _, client, err := conn.Receive(ctx, b)
		if errors.Is(err, context.Canceled) {
			return nil
		}
		if err != nil {
			return err
		}
		var req request
		if json.Unmarshal(b[:n], &req) != nil {
			continue // the empty message that follows the client's reads, for one
		}
		// It stays registered for all clients.
		if _, err := memory.Remote(); errors.Is(err, rdma.ErrNotRegistered) {
			if err := conn.Register(ctx, &memory, client); err != nil {
				return err
			}
		}
		rep, err := load(file, req.Offset, region, &memory)
		if err != nil {
			rep = reply{Error: err.Error()}
		}
		message, err := json.Marshal(rep)
		if err != nil {
			return err
		}
		if _, _, err := conn.Socket().WriteMsgContext(ctx, message, nil, client); err != nil {
			return err
		}
	}
}

// load brings the file from an offset into the region.
func load(file *os.File, offset int64, region *rdma.Region, memory *rdma.Registration) (reply, error) {
	info, err := file.Stat()
	if err != nil {
		return reply{}, err
	}
	n, err := file.ReadAt(region.Bytes(), offset)
	if err != nil && err != io.EOF {
		return reply{}, err
	}
	rep := reply{Offset: offset, Size: info.Size()}
	if n == 0 {
		return rep, nil
	}
	remote, err := memory.Remote()
	if err != nil {
		return reply{}, err
	}
	remote.Len, remote.Keys = int64(n), remote.Keys[:(n-1)/rdma.MaxOperation+1]
	sum := sha256.Sum256(region.Bytes()[:n])
	rep.Sum = sum[:]
	rep.Remote, err = remote.MarshalBinary()
	return rep, err
}

func fetch(ctx context.Context, conn *rdma.Conn, server netip.AddrPort, name string) (err error) {
	region, err := rdma.Allocate(window)
	if err != nil {
		return err
	}
	defer region.Close(ctx)
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	whole := sha256.New()
	began := time.Now()
	for offset := int64(0); ; {
		rep, err := ask(ctx, conn, server, offset)
		if err != nil {
			return err
		}
		if len(rep.Remote) == 0 {
			break
		}
		var remote rdma.Remote
		if err := remote.UnmarshalBinary(rep.Remote); err != nil {
			return err
		}
		if remote.Len > window {
			return fmt.Errorf("%v offers %d bytes at a time", server, remote.Len)
		}
		local := region.Slice(0, int(remote.Len))
		transfer := rdma.Transfer{
			Peer: server, Remote: remote, Local: []rdma.Slice{local},
			Progress: func(moved int64) {
				fmt.Fprintf(os.Stderr, "\r%3d%% of %d bytes", (offset+moved)*100/max(rep.Size, 1), rep.Size)
			},
		}
		if err := again(ctx, func() error { return conn.Read(ctx, &transfer) }); err != nil {
			return err
		}
		if sum := sha256.Sum256(local.Bytes()); !bytes.Equal(sum[:], rep.Sum) {
			return fmt.Errorf("what was read from offset %d has another checksum", offset)
		}
		if _, err := io.MultiWriter(file, whole).Write(local.Bytes()); err != nil {
			return err
		}
		offset += remote.Len
	}
	fmt.Fprintf(os.Stderr, "\ncopied in %v\n", time.Since(began).Round(time.Millisecond))
	fmt.Printf("%x  %s\n", whole.Sum(nil), name)
	return nil
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

// ask asks for the file from an offset until the server answers. A message to a
// server that is not there yet is lost without a word, so it asks again.
func ask(ctx context.Context, conn *rdma.Conn, server netip.AddrPort, offset int64) (reply, error) {
	message, err := json.Marshal(request{offset})
	if err != nil {
		return reply{}, err
	}
	b := make([]byte, 64<<10)
	for began := time.Now(); time.Since(began) < patience; {
		if _, _, err := conn.Socket().WriteMsgContext(ctx, message, nil, server); err != nil {
			return reply{}, err
		}
		rep, err := hear(ctx, conn, server, offset, b)
		if errors.Is(err, context.DeadlineExceeded) {
			continue
		}
		return rep, err
	}
	return reply{}, fmt.Errorf("%v does not answer", server)
}

// hear waits a second for the answer about an offset.
func hear(ctx context.Context, conn *rdma.Conn, server netip.AddrPort, offset int64, b []byte) (reply, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	for {
		n, _, src, err := conn.Receive(ctx, b)
		if err != nil {
			return reply{}, err
		}
		var rep reply
		switch {
		case src != server || json.Unmarshal(b[:n], &rep) != nil:
		case rep.Error != "":
			return reply{}, fmt.Errorf("%v: %s", server, rep.Error)
		case rep.Offset == offset:
			return rep, nil
		}
	}
}
