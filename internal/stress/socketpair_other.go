//go:build !unix

package stress

import (
	"errors"
	"net"
)

func socketPair() (a, b net.Conn, err error) {
	return nil, nil, errors.ErrUnsupported
}
