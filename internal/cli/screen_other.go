//go:build !unix

package cli

import (
	"context"
	"os"
)

// A Screen needs a Unix terminal.
type Screen struct{}

// OpenScreen returns a Screen that shows nothing.
func OpenScreen(_ context.Context, keyboard, terminal *os.File) *Screen { return &Screen{} }

// Keys receives nothing.
func (*Screen) Keys() <-chan byte { return nil }

// Redraw receives nothing.
func (*Screen) Redraw() <-chan struct{} { return nil }

// Size returns the size of a screen of old.
func (*Screen) Size() (width, height int) { return 80, 24 }

// Show does nothing.
func (*Screen) Show([]string) error { return nil }

// Close does nothing.
func (*Screen) Close() {}
