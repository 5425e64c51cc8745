package main

import (
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/labtest"
)

func TestMain(m *testing.M) { labtest.MainOf(m, main) }

func TestTheManualDescribesTheOptions(t *testing.T) {
	page, err := os.ReadFile("../../man/rds-stress.1")
	if err != nil {
		t.Fatal(err)
	}
	if err := cli.CheckManual(newOptions(io.Discard, io.Discard).app(), string(page)); err != nil {
		t.Error(err)
	}
}

// What abbreviates a long name of C and no other of C's has to go on to.
func TestAbbreviationsOfCAreTaken(t *testing.T) {
	names := strings.Fields("req-bytes ack-bytes rdma-bytes rdma-buffers rdma-mode tasks depth recv-addr send-addr port time tos report-cpu report-summary " +
		"rtprio verify trace one-way rdma-use-once rdma-use-get-mr rdma-use-fence rdma-use-notify rdma-cache-mrs rdma-alignment rdma-key-o-meter " +
		"show-params show-perfdata connect-retries use-cong-monitor show-outliers show-histogram reset async cancel-sent-to abort-after disable-inq " +
		"always-bursty sync-always-bursty")
	for _, name := range names {
		for n := 1; n <= len(name); n++ {
			meant := slices.DeleteFunc(slices.Clone(names), func(other string) bool { return !strings.HasPrefix(other, name[:n]) })
			if len(meant) > 1 && n < len(name) {
				continue
			}
			var given []string
			app := newOptions(io.Discard, io.Discard).app()
			app.Action = func(c *cli.Context) error {
				given = slices.DeleteFunc(c.LocalFlagNames(), func(flag string) bool { return !slices.Contains(names, flag) })
				return nil
			}
			arg := "--" + name[:n]
			for _, f := range app.Flags {
				if v, ok := f.(interface{ TakesValue() bool }); ok && v.TakesValue() && slices.Contains(f.Names(), name) {
					arg += "=1"
				}
			}
			var stderr strings.Builder
			app.ErrWriter = &stderr
			if status := cli.Run(t.Context(), app, cli.Permute, []string{"rds-stress", arg}); status != 0 || !slices.Contains(given, name) {
				t.Errorf("%s: status %d, taken for %v, want %s: %s", arg, status, given, name, stderr.String())
			}
		}
	}
}
