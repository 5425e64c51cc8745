//go:build !linux

package route

import (
	"context"
	"errors"
	"fmt"
	"runtime"
)

func unsupported() error {
	return fmt.Errorf("route: look-ups need Linux, this is %s: %w", runtime.GOOS, errors.ErrUnsupported)
}

func lookup(context.Context, query) (Route, error)           { return Route{}, unsupported() }
func addresses(context.Context, *Config) ([]Address, error)  { return nil, unsupported() }
func isLocal(context.Context, query) (bool, error)           { return false, unsupported() }
func listLinks(context.Context, *Config) ([]Link, error)     { return nil, unsupported() }
func neighbors(context.Context, *Config) ([]Neighbor, error) { return nil, unsupported() }
