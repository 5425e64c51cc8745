package rdsinfo

// Retries is how often a table had grown while it was read.
func (s *Snapshot) Retries() int { return s.retries }
