package rdma

import (
	"bufio"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// checkMapping says whether the size bytes at addr are shared mappings that can be
// read and written, going by the text of /proc/self/maps (proc_pid_maps(5)).
func checkMapping(maps io.Reader, addr, size uint64) error {
	end := addr + size
	for lines := bufio.NewScanner(maps); addr < end; {
		if !lines.Scan() {
			if err := lines.Err(); err != nil {
				return err
			}
			return refuse(ErrNotMapped, "there is no mapping at %#x", addr)
		}
		m, err := parseMapping(lines.Text())
		switch {
		case err != nil:
			return err
		case m.end <= addr:
			continue
		case m.start > addr:
			return refuse(ErrNotMapped, "there is no mapping at %#x", addr)
		case !strings.HasPrefix(m.perms, "rw") || !strings.HasSuffix(m.perms, "s"):
			return refuse(ErrNotMapped, "%s is mapped %s, and has to be shared, readable and writable (Allocate gives memory)", m.name, m.perms)
		}
		addr = m.end
	}
	return nil
}

// A mapping is a line of /proc/self/maps.
type mapping struct {
	start, end uint64
	perms      string // such as "rw-s"
	name       string
}

func parseMapping(line string) (mapping, error) {
	fields := strings.Fields(line)
	if len(fields) < 5 {
		return mapping{}, fmt.Errorf("/proc/self/maps: unknown line %q", line)
	}
	from, to, ok := strings.Cut(fields[0], "-")
	start, err1 := strconv.ParseUint(from, 16, 64)
	end, err2 := strconv.ParseUint(to, 16, 64)
	if !ok || err1 != nil || err2 != nil || end <= start || len(fields[1]) != 4 {
		return mapping{}, fmt.Errorf("/proc/self/maps: unknown line %q", line)
	}
	m := mapping{start, end, fields[1], "private memory"}
	if len(fields) > 5 {
		m.name = strings.Join(fields[5:], " ")
	}
	return m, nil
}
