package rdsinfo

import (
	"errors"
	"slices"
	"syscall"
	"time"

	"github.com/rdskit/rdskit/cmsg"
	"github.com/rdskit/rdskit/internal/abi"
	"github.com/rdskit/rdskit/internal/sys"
)

// A Config says where to read, and what. The zero Config and nil read everything in the network
// namespace of the calling thread.
type Config struct {
	// NetNS is the descriptor of a network namespace, 0 for that of the calling
	// thread.
	NetNS int
	// IPv4Only makes [Read] and [Collect] leave out what has IPv6 addresses, which spares reading it.
	IPv4Only bool
	// TCPHealth makes [Collect] read how TCP fares, for which the kernel may load the module
	// tcp_diag. Without it that is read if the module is loaded.
	TCPHealth bool
}

// A Snapshot holds tables as the kernel returned them. They are read one after
// the other, while the kernel goes on: they need not agree.
//
// Methods that decode a table return a [*TableError] if it was not read, or
// cannot be decoded. What they return is the caller's.
type Snapshot struct {
	// Time is when the first table was read.
	Time time.Time
	// Dialect is which kernel it is of.
	Dialect cmsg.Dialect

	layout abi.Layout
	// raw has what the kernel returned for each option that was read.
	raw map[int]rawTable
	// retries is how often a table had grown while it was read.
	retries int
}

// A rawTable is the answer to one option.
type rawTable struct {
	records []byte
	size    int // of each, in bytes
	err     error
}

// Read takes tables from the kernel, all of them if none is named. Its error
// is that of making a socket: without the rds module it is EAFNOSUPPORT. Some kernels load
// the module when a socket is made.
//
// A table that the kernel does not have is no error of Read, but of the method that decodes it.
func Read(cfg *Config, which ...Table) (*Snapshot, error) {
	if cfg == nil {
		cfg = &Config{}
	}
	sock, err := sys.NewSocket(cfg.NetNS)
	if err != nil {
		return nil, err
	}
	defer sock.Close()
	if len(which) == 0 {
		which = AllTables()
	}
	s := &Snapshot{Time: time.Now(), Dialect: sock.Dialect(), raw: make(map[int]rawTable)}
	read := func(option int) error {
		records, size, err := sock.Info(option, nil)
		s.raw[option] = rawTable{records, size, err}
		return err
	}
	for _, t := range which {
		if t < 0 || t >= tables {
			continue // decoding it says so
		}
		info := tableInfos[t]
		var err6 error
		only4 := info.v6 == 0 || cfg.IPv4Only && t.right4()
		if !only4 {
			err6 = read(info.v6)
		}
		if only4 || t.merges() || err6 != nil {
			read(info.v4)
		}
	}
	s.retries = sock.InfoRetries()
	return s, nil
}

// ErrNoTable is what a [*TableError] is, as errors.Is has it, if the kernel has no such table: the module that provides
// it is not loaded, or the kernel is too old or of another maker (ENOPROTOOPT).
var ErrNoTable = errors.New("the kernel has no such table")

var (
	errNotRead   = errors.New("it was not read")
	errNoQueue   = errors.New("it is not a queue of messages")
	errBadRecord = errors.New("its records are too short")
)

// A TableError says why a table of a Snapshot cannot be had.
type TableError struct {
	Table Table
	Err   error
}

func (e *TableError) Error() string {
	msg := "table of " + e.Table.String() + ": "
	if errors.Is(e.Err, syscall.ENOPROTOOPT) && e.Table >= 0 && e.Table < tables {
		return msg + ErrNoTable.Error() + ": it comes with the module " + tableInfos[e.Table].provider
	}
	return msg + e.Err.Error()
}

func (e *TableError) Unwrap() error { return e.Err }

// Is makes ErrNoTable match ENOPROTOOPT.
func (e *TableError) Is(target error) bool {
	return target == ErrNoTable && errors.Is(e.Err, syscall.ENOPROTOOPT)
}

// records returns the records that an option returned, each of at least min bytes.
func (s *Snapshot) records(option, min int) ([]record, error) {
	raw, ok := s.raw[option]
	switch {
	case !ok:
		return nil, errNotRead
	case raw.err != nil:
		return nil, raw.err
	case len(raw.records) == 0:
		return nil, nil
	case raw.size < min:
		return nil, errBadRecord
	}
	records := make([]record, 0, len(raw.records)/raw.size)
	for b := range slices.Chunk(raw.records, raw.size) {
		if len(b) == raw.size {
			records = append(records, record{b, s.layout})
		}
	}
	return records, nil
}

func rows[T any](s *Snapshot, option, min int, parse func(record) T) ([]T, error) {
	records, err := s.records(option, min)
	if err != nil {
		return nil, err
	}
	rows := make([]T, len(records))
	for i, r := range records {
		rows[i] = parse(r)
	}
	return rows, nil
}

// decode decodes a table that has one form.
func decode[T any](s *Snapshot, t Table, min int, parse func(record) T) ([]T, error) {
	all, err := rows(s, tableInfos[t].v4, min, parse)
	if err != nil {
		return nil, &TableError{t, err}
	}
	return all, nil
}

// decodeBoth decodes a table that has an IPv4 and an RDS6 form. The latter lists
// IPv4 objects too, but tells less of them.
func decodeBoth[T any](s *Snapshot, t Table, min4 int, parse4 func(record) T, min6 int, parse6 func(record) T, is4 func(T) bool) ([]T, error) {
	info := tableInfos[t]
	v4, err4 := rows(s, info.v4, min4, parse4)
	v6, err6 := rows(s, info.v6, min6, parse6)
	switch {
	case err4 == nil && err6 == nil && t.merges():
		return merge(v4, v6, is4), nil
	case err6 == nil:
		return v6, nil
	case err4 == nil && (errors.Is(err6, syscall.ENOPROTOOPT) || err6 == errNotRead):
		return v4, nil // of a kernel without IPv6, or as asked
	case err6 == errNotRead:
		return nil, &TableError{t, err4}
	}
	return nil, &TableError{t, err6}
}

// merge returns the rows of v4, and those of v6 that are not IPv4. The kernel walks the same
// lists for both, so that the order of v6 serves for all, unless something came or
// went between the two.
func merge[T any](v4, v6 []T, is4 func(T) bool) []T {
	both := 0
	for _, row := range v6 {
		if is4(row) {
			both++
		}
	}
	merged := make([]T, 0, len(v4)+len(v6)-both)
	if both != len(v4) {
		merged = append(merged, v4...)
	}
	next := v4
	for _, row := range v6 {
		switch {
		case !is4(row):
			merged = append(merged, row)
		case both == len(v4):
			merged = append(merged, next[0])
			next = next[1:]
		}
	}
	return merged
}
