package rdsinfo

import (
	"encoding/json"
	"fmt"
)

// An Optional is a value that not every kernel reports.
type Optional[T any] struct {
	Value T
	Known bool
}

func known[T any](v T) Optional[T] { return Optional[T]{v, true} }

// String returns the value, or "-" if it is not known.
func (o Optional[T]) String() string {
	if !o.Known {
		return "-"
	}
	return fmt.Sprint(o.Value)
}

// MarshalJSON returns null for what is not known.
func (o Optional[T]) MarshalJSON() ([]byte, error) {
	if !o.Known {
		return []byte("null"), nil
	}
	return json.Marshal(o.Value)
}

// UnmarshalJSON reads what MarshalJSON returned.
func (o *Optional[T]) UnmarshalJSON(b []byte) error {
	*o = Optional[T]{}
	if string(b) == "null" {
		return nil
	}
	o.Known = true
	return json.Unmarshal(b, &o.Value)
}
