package cli

import (
	"os"

	"golang.org/x/term"
)

// IsTerminal reports whether a person reads what is written to f.
func IsTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }
