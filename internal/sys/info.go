package sys

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/rdskit/rdskit/internal/abi"
)

// maxInfoTries bounds how often a table that grows between the call that asks
// for its length and the one for its contents is read again.
const maxInfoTries = 100

// Info reads one of the tables RDS_INFO_* into b or, if b is too short, into a
// new slice, and returns the records, which are size bytes each. Records are never
// partial. A table that no loaded module provides is ENOPROTOOPT.
func (s *Socket) Info(table int, b []byte) (records []byte, size int, err error) {
	for try := range maxInfoTries {
		size, n, err := s.Getsockopt(abi.SOL_RDS, table, b)
		switch {
		case err == nil && (size <= 0 || n > len(b) || n%size != 0):
			return nil, 0, fmt.Errorf("table %d: %d bytes of records of %d bytes", table, n, size)
		case err == nil:
			return b[:n], size, nil
		case !errors.Is(err, syscall.ENOSPC):
			return nil, 0, err
		}
		// The kernel has said how much it needs, for now. The more often the table grew, the more
		// room it gets.
		if len(b) > 0 {
			s.infoRetries.Add(1)
		}
		b = make([]byte, n+try*(n/4+4096))
	}
	return nil, 0, fmt.Errorf("table %d grew %d times while it was read: %w", table, maxInfoTries, syscall.ENOSPC)
}

// InfoRetries is how often Info had to read a table again since it had grown meanwhile.
func (s *Socket) InfoRetries() int { return int(s.infoRetries.Load()) }
