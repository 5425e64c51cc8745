package stress

import (
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
)

func TestMain(m *testing.M) { labtest.Main(m) }
