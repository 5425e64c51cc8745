//go:build !linux

package tcpdiag

import (
	"context"
	"errors"
	"fmt"
)

func sockets(context.Context, *Config) ([]Socket, error) {
	return nil, fmt.Errorf("needs Linux: %w", errors.ErrUnsupported)
}
