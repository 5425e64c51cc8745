package rdmadev

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/mdlayher/netlink"
)

// Record writes what the kernel answers the client into a directory, a file for each
// command and message.
func Record(t *testing.T, c *Client, dir string) { c.conn = recorder{c.conn, t, dir} }

type recorder struct {
	conn
	t   *testing.T
	dir string
}

func (r recorder) Ask(typ, want netlink.HeaderType, flags netlink.HeaderFlags, request []byte) ([][]byte, error) {
	data, err := r.conn.Ask(typ, want, flags, request)
	if err := os.MkdirAll(r.dir, 0o755); err != nil {
		r.t.Fatal(err)
	}
	for i, b := range data {
		name := fmt.Sprintf("%s-%d.bin", fileNames[command(typ&0x3ff)], i)
		if err := os.WriteFile(filepath.Join(r.dir, name), b, 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	return data, err
}
