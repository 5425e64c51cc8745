package sys

import (
	"errors"
	"syscall"

	"github.com/rdskit/rdskit/internal/abi"
)

// Dialect tells mainline from UEK by reading option 8, which only mainline can
// read: UEK has its connection reset there.
func (s *Socket) Dialect() abi.Dialect {
	if _, err := s.GetsockoptInt(abi.SOL_RDS, abi.SO_RDS_TRANSPORT); errors.Is(err, syscall.ENOPROTOOPT) {
		if _, err := s.GetsockoptInt(abi.SOL_RDS, abi.UEK_SO_RDS_TRANSPORT); err == nil {
			return abi.UEK
		}
	}
	return abi.Mainline
}
