package netns

import "github.com/rdskit/rdskit/internal/sys"

// Do calls f on a thread in the network namespace of a descriptor, 0 for that of the calling thread.
// Sockets that f makes stay there. f must not hand the work to another goroutine.
func Do(fd int, f func() error) error { return sys.InNetNS(fd, f) }
