// Package info is what the command rds-info does: the kernel's tables as text
// that the C tools print, as JSON, and what follows from them.
package info
