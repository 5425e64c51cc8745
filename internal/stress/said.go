package stress

import (
	"encoding/json"
	"strings"

	"github.com/rdskit/rdskit/internal/plain"
)

// Said is text of the peer, which may be anybody: when it is decoded it is made short and fit to be shown.
type Said string

const maxSaid = 1000 // bytes

// UnmarshalJSON decodes a string. Lines become one.
func (s *Said) UnmarshalJSON(b []byte) error {
	var text string
	if err := json.Unmarshal(b, &text); err != nil {
		return err
	}
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "..."
	}
	*s = Said(plain.Text(strings.ReplaceAll(text, "\n", "; ")))
	return nil
}
