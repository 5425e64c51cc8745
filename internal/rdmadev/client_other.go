//go:build !linux

package rdmadev

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

func dial(context.Context) (conn, error) {
	return nil, fmt.Errorf("it needs Linux, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}
