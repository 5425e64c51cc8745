package info

import (
	"slices"

	"github.com/rdskit/rdskit/rdsinfo"
)

// selectRows decodes a table and keeps the rows to show.
func selectRows[T any](rows func() ([]T, error), attributesOf func(*T) attributes, ipv6 bool, f Filter) ([]T, error) {
	all, err := rows()
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(all, func(row T) bool {
		a := attributesOf(&row)
		return !ipv6 && a.local.IsValid() && !a.local.Is4() || !f.keeps(a)
	}), nil
}

// A visitor gets the rows of one table, whichever it is.
type visitor struct {
	counters        func([]rdsinfo.Counter)
	connections     func([]rdsinfo.Connection)
	sockets         func([]rdsinfo.Socket)
	queue           func(rdsinfo.Table, []rdsinfo.Message)
	tcpSockets      func([]rdsinfo.TCPSocket)
	ibConnections   func([]rdsinfo.IBConnection)
	pathConnections func([]rdsinfo.PathConnection)
}

// visit decodes a table of s for v, keeping the rows to show.
func visit(s *rdsinfo.Snapshot, t rdsinfo.Table, ipv6 bool, f Filter, v visitor) error {
	switch t {
	case rdsinfo.Counters:
		return pass(v.counters)(selectRows(s.Counters, counterAttributes, ipv6, f))
	case rdsinfo.Connections:
		return pass(v.connections)(selectRows(s.Connections, connectionAttributes, ipv6, f))
	case rdsinfo.Sockets:
		return pass(v.sockets)(selectRows(s.Sockets, socketAttributes, ipv6, f))
	case rdsinfo.TCPSockets:
		return pass(v.tcpSockets)(selectRows(s.TCPSockets, tcpAttributes, ipv6, f))
	case rdsinfo.IBConnections:
		return pass(v.ibConnections)(selectRows(s.IBConnections, ibAttributes, ipv6, f))
	case rdsinfo.ConnectionPaths:
		return pass(v.pathConnections)(selectRows(s.ConnectionPaths, pathAttributes, ipv6, f))
	}
	queue := func() ([]rdsinfo.Message, error) { return s.Queue(t) }
	rows, err := selectRows(queue, messageAttributes, ipv6, f)
	if err == nil {
		v.queue(t, rows)
	}
	return err
}

func pass[T any](f func([]T)) func([]T, error) error {
	return func(rows []T, err error) error {
		if err == nil {
			f(rows)
		}
		return err
	}
}
