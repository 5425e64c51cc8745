package cmsg_test

import (
	"errors"
	"fmt"
	"log"

	"github.com/rdskit/rdskit/cmsg"
)

// What a receive may bring: here the statuses of two RDMA operations.
func ExampleParse() {
	var e cmsg.Encoder
	oob := e.AppendRDMAStatus(nil, cmsg.RDMAStatus{Token: 8, Status: cmsg.StatusRemoteError})
	oob = e.AppendRDMAStatus(oob, cmsg.RDMAStatus{Token: 7})

	it := cmsg.Parse(cmsg.Mainline, oob)
	for it.Next() {
		switch m := it.Message(); m.Kind() {
		case cmsg.KindRDMAStatus:
			s, err := m.RDMAStatus()
			if err != nil {
				log.Fatal(err)
			}
			fmt.Printf("operation %d: %v\n", s.Token, s.Status)
		case cmsg.KindUnknown:
			fmt.Printf("level %d, type %d: %x\n", m.Level, m.Type, m.Data)
		}
	}
	if err := it.Err(); err != nil {
		log.Fatal(err)
	}
	// Output:
	// operation 8: remote error
	// operation 7: success
}

// The same bytes mean different things to the two families of kernels.
func ExampleParse_dialects() {
	oob, err := cmsg.Encoder{}.AppendZerocopyCookie(nil, 42)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range []cmsg.Dialect{cmsg.Mainline, cmsg.UEK} {
		it := cmsg.Parse(d, oob)
		for it.Next() {
			fmt.Printf("%v: %v\n", d, it.Message().Kind())
		}
	}
	// Output:
	// mainline: zerocopy cookie
	// UEK: INQ
}

// A control buffer that is too small cuts the last message.
func ExampleMessage_truncated() {
	oob := cmsg.Encoder{}.AppendCongestionUpdate(nil, cmsg.CongestionMaskOf(4000))
	oob = oob[:len(oob)-4]

	it := cmsg.Parse(cmsg.Mainline, oob)
	for it.Next() {
		fmt.Println("a message")
	}
	fmt.Println(errors.Is(it.Err(), cmsg.ErrTruncated))
	// Output: true
}

// An RDMA write of one piece of local memory, and what makes it impossible.
func ExampleEncoder_AppendRDMAArgs() {
	const list = 0x7f0000000000 // address of memory that holds AppendIovec's 16 bytes

	var e cmsg.Encoder
	buf := make([]byte, 0, cmsg.KindRDMAArgs.Space(e.Dialect))
	oob := e.AppendRDMAArgs(buf, cmsg.RDMAArgs{
		Key:        0x203,
		Remote:     cmsg.Iovec{Addr: 0, Len: 4096},
		LocalAddr:  list,
		LocalCount: 1,
		Flags:      cmsg.FlagReadWrite | cmsg.FlagNotifyMe,
		Token:      7,
	})
	fmt.Println(cmsg.Check(e.Dialect, oob))

	oob = e.AppendRDMADest(oob, 0x204)
	fmt.Println(errors.Is(cmsg.Check(e.Dialect, oob), cmsg.ErrRefused))
	// Output:
	// <nil>
	// true
}

func ExampleCongestionMask_Contains() {
	m := cmsg.CongestionMaskOf(4000)
	fmt.Println(m.Contains(4000), m.Contains(4064), m.Contains(4001))
	// Output: true true false
}
