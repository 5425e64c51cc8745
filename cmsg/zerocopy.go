package cmsg

import (
	"fmt"

	"github.com/rdskit/rdskit/internal/abi"
)

// AppendZerocopyCookie appends an RDS_CMSG_ZCOPY_COOKIE, without which a send
// with MSG_ZEROCOPY fails with EINVAL. The cookie is the caller's own name for
// the buffer; it need not be unique. UEK has no zerocopy.
func (e Encoder) AppendZerocopyCookie(b []byte, cookie uint32) ([]byte, error) {
	if e.Dialect != Mainline {
		return b, unsupported(e.Dialect, "zerocopy cookie")
	}
	b = e.begin(b, abi.RDS_CMSG_ZCOPY_COOKIE, abi.SizeofZcopyCookie)
	b = e.layout.AppendUint32(b, cookie)
	return appendPadding(b, e.layout, abi.SizeofZcopyCookie), nil
}

// ZerocopyCookie decodes an RDS_CMSG_ZCOPY_COOKIE.
func (m Message) ZerocopyCookie() (uint32, error) {
	b, err := m.data(KindZerocopyCookie, abi.SizeofZcopyCookie)
	if err != nil {
		return 0, err
	}
	return m.layout.Uint32(b), nil
}

// MaxZerocopyCookies is how many cookies one ZerocopyCompletion holds.
const MaxZerocopyCookies = abi.RDS_MAX_ZCOOKIES

// ZerocopyCompletion is struct rds_zcopy_cookies: the kernel no longer uses
// the buffers that were sent with these cookies.
//
// The kernel adds at most one to a receive, and only if its whole space is
// left in the control buffer; else it keeps it (rds_recvmsg_zcookie in
// net/rds/recv.c).
type ZerocopyCompletion struct {
	N       int // how many of Cookies count
	Cookies [MaxZerocopyCookies]uint32
}

// AppendZerocopyCompletion appends an RDS_CMSG_ZCOPY_COMPLETION, which only
// the kernel sends.
func (e Encoder) AppendZerocopyCompletion(b []byte, c ZerocopyCompletion) ([]byte, error) {
	if e.Dialect != Mainline {
		return b, unsupported(e.Dialect, "zerocopy completion")
	}
	if c.N < 0 || c.N > len(c.Cookies) {
		return b, fmt.Errorf("cmsg: zerocopy completion of %d cookies: 0 to %d fit", c.N, len(c.Cookies))
	}
	b = e.begin(b, abi.RDS_CMSG_ZCOPY_COMPLETION, abi.SizeofZcopyCookies)
	b = e.layout.AppendUint32(b, uint32(c.N))
	clear(c.Cookies[c.N:])
	for _, cookie := range c.Cookies {
		b = e.layout.AppendUint32(b, cookie)
	}
	return appendPadding(b, e.layout, abi.SizeofZcopyCookies), nil
}

// ZerocopyCompletion decodes an RDS_CMSG_ZCOPY_COMPLETION.
func (m Message) ZerocopyCompletion() (ZerocopyCompletion, error) {
	b, err := m.data(KindZerocopyCompletion, abi.SizeofZcopyCookies)
	if err != nil {
		return ZerocopyCompletion{}, err
	}
	n := m.layout.Uint32(b)
	if n > MaxZerocopyCookies {
		return ZerocopyCompletion{}, m.errorf(ErrMalformed, "%d cookies, at most %d fit", n, MaxZerocopyCookies)
	}
	c := ZerocopyCompletion{N: int(n)}
	for i := range c.N {
		c.Cookies[i] = m.layout.Uint32(b[4+4*i:])
	}
	return c, nil
}
