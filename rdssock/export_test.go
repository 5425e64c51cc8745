package rdssock

import "time"

// SetRetestInterval changes how often blocked writes try again by themselves.
func (c *Conn) SetRetestInterval(d time.Duration) { c.retestInterval = d }

// Rescues is how many writes went on only because they tried again by themselves.
func (c *Conn) Rescues() uint64 { return c.rescues.Load() }
