package abi

// RDS_CONG_MONITOR_SIZE is how many classes the congestion monitor sorts the
// 65536 ports into. A congestion update tells classes, not ports.
const RDS_CONG_MONITOR_SIZE = 64

// CongBit returns the class of a port, which is the number of its bit in a
// congestion update.
func CongBit(port uint16) uint { return uint(port) % RDS_CONG_MONITOR_SIZE }
