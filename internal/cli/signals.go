package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Signals turns the signals of a measuring command into what it does about
// them.
//
// The context that Signals returns is done after the first SIGINT or SIGTERM: the command
// prints its summary and returns. A second one ends the process at once, with
// 128 plus the number of the signal as the shell has it. The channel receives
// on each SIGQUIT, when the command prints where it stands; a SIGQUIT
// that comes before the last one was taken is dropped.
//
// The stop function gives the signals their default meaning back.
func Signals(parent context.Context) (ctx context.Context, interim <-chan os.Signal, stop func()) {
	ctx, cancel := context.WithCancel(parent)
	end := make(chan os.Signal, 2)
	signal.Notify(end, os.Interrupt, syscall.SIGTERM)
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, syscall.SIGQUIT)
	done := make(chan struct{})
	go func() {
		select {
		case <-end:
			cancel()
		case <-done:
			return
		}
		select {
		case s := <-end:
			if n, ok := s.(syscall.Signal); ok {
				os.Exit(128 + int(n))
			}
			os.Exit(Failed)
		case <-done:
		}
	}()
	return ctx, quit, func() {
		signal.Stop(end)
		signal.Stop(quit)
		close(done)
		cancel()
	}
}
