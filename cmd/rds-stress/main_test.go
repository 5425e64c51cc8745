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

func TestValuesThatCannotBeAreRefusedByName(t *testing.T) {
	for args, want := range map[string]string{
		"--rate 0":                                 "--rate \"0\": not a rate",
		"--rate 1e-300":                            "--rate \"1e-300\": not a rate",
		"--rate NaN":                               "--rate \"NaN\": not a rate",
		"--rate inf":                               "--rate \"inf\": not a rate",
		"--rate 1e10":                              "--rate \"1e10\": not a rate",
		"--size-range 64":                          "--size-range \"64\": not a range of sizes",
		"--size-range 64-":                         "--size-range \"64-\": not a range of sizes",
		"--size-range 8k-64":                       "--size-range \"8k-64\": runs backwards: want 64-8k",
		"--size-range 64-2m":                       "--size-range \"64-2m\": not a range of sizes",
		"--size-range 64-100 -q 64":                "-q and --size-range exclude each other",
		"--interval 0":                             "--interval \"0\": too short a time: want at least 1 ms",
		"--interval 999us":                         "--interval \"999us\": too short a time: want at least 1 ms",
		"--interval 1e300":                         "--interval \"1e300\": too long a time",
		"--warmup 3601":                            "--warmup \"3601\": too long a time: want at most 3600 s",
		"--warmup=-1":                              "--warmup \"-1\": too short a time",
		"--give-up nan":                            "--give-up \"nan\": ",
		"--show-outliers 4294967296":               "--show-outliers \"4294967296\": out of range: want 0 to 4294967295",
		"--abort-after 4294967296":                 "--abort-after \"4294967296\": out of range: want 0 to 4294967295",
		"--transport loopback":                     "--transport \"loopback\": not a transport to choose: want tcp or infiniband",
		"--allow 10.0.0.0/33":                      "--allow \"10.0.0.0/33\": not a network",
		"--allow 10.0.0.1 -s h":                    "--allow is for the side that waits: without -s",
		"--serve -s h":                             "--serve is for the side that waits: without -s",
		"--self -s 127.0.0.2":                      "--self needs two addresses of this host: -r and -s",
		"--self --serve -r 127.0.0.1 -s 127.0.0.2": "--self and --serve exclude each other",
		"--json --csv":                             "--json, --csv and --show-perfdata exclude each other",
		"-4 -6":                                    "-4 and -6 exclude each other",
		"--netns=":                                 "--netns needs a value that is not empty",
		"--netns no-such-namespace":                "--netns: ",
		"--peer-version two":                       "--peer-version \"two\": not a version",
		"--max-memory 1":                           "--max-memory \"1\": out of range",
		"--rdma-cache-mrs 1 --rdma-use-once 1":     "conflicts with",
		"-q 0":                                     "-q \"0\": out of range: want 1 to 1048576",
		"-t 0":                                     "-t \"0\": out of range: want 1 to 1024",
		"-d 4294967295":                            "-d \"4294967295\": out of range: want 1 to 65535",
		"-p 65535":                                 "-p \"65535\": out of range: want 1 to 65534",
	} {
		var stdout, stderr strings.Builder
		app := newOptions(&stdout, &stderr).app()
		status := cli.Run(t.Context(), app, cli.Permute, append([]string{"rds-stress"}, strings.Fields(args)...))
		if status != cli.CannotTry || !strings.Contains(stderr.String(), want) || stdout.Len() > 0 && !strings.Contains(args, "--json") {
			t.Errorf("%s: status %d, %q, want %q; stdout %q", args, status, stderr.String(), want, stdout.String())
		}
	}
}

func TestNetworksThatMayConnect(t *testing.T) {
	for in, want := range map[string]string{
		"10.9.0.1": "10.9.0.1/32", "10.9.0.1/24": "10.9.0.0/24", "::ffff:10.9.0.1": "10.9.0.1/32", "::ffff:10.9.0.1/120": "10.9.0.0/24",
		"fd00::1": "fd00::1/128", "fd00::1/8": "fd00::/8", "fe80::1%eth0": "fe80::1/128", "0.0.0.0/0": "0.0.0.0/0",
	} {
		var l prefixList
		if err := l.Set(in); err != nil || l.String() != want {
			t.Errorf("%s: %v, %v, want %s", in, l.String(), err, want)
		}
	}
}
