package rdssock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/netip"
	"time"

	"github.com/rdskit/rdskit/rdssock"
)

func Example() {
	server, err := rdssock.Listen(netip.MustParseAddrPort("127.0.0.1:4000"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()

	client, err := rdssock.Dial(netip.MustParseAddrPort("127.0.0.1:4000"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// An invalid destination is the connected one.
	if _, err := client.WriteToAddrPort([]byte("hello"), netip.AddrPort{}); err != nil {
		log.Fatal(err)
	}

	b := make([]byte, 1<<20)
	n, src, err := server.ReadFromAddrPort(b)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Printf("%s from %s\n", b[:n], src.Addr())
}

func ExampleListen_errors() {
	// 192.0.2.1 is no address of this host, and RDS has no wildcard address.
	_, err := rdssock.Listen(netip.MustParseAddrPort("192.0.2.1:4000"), nil)
	switch {
	case errors.Is(err, rdssock.ErrModuleMissing):
		fmt.Println("this kernel has no RDS")
	case errors.Is(err, rdssock.ErrNotLocal):
		fmt.Println("not an address of this host")
	case errors.Is(err, rdssock.ErrNoTransport):
		fmt.Println("no transport serves the address")
	}
}

// Close drops what the peer's kernel has not acknowledged, so that a program
// that ends after its last write flushes.
func ExampleConn_Flush() {
	conn, err := rdssock.Dial(netip.MustParseAddrPort("127.0.0.1:4000"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	if _, err := conn.WriteToAddrPort([]byte("last words"), netip.AddrPort{}); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := conn.Flush(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println("acknowledged")
}
