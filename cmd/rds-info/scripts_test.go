package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rdskit/rdskit/internal/labtest"
)

// bundleOf makes a bundle of a stored snapshot.
func bundleOf(t *testing.T, capture string) string {
	t.Helper()
	snapshot, err := os.ReadFile(filepath.Join("../../rdsinfo/testdata", capture+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return bundleFile(t, map[string]any{"host": "db1", "snapshot": json.RawMessage(snapshot)})
}

func bundleFile(t *testing.T, members map[string]any) string {
	t.Helper()
	members["format"], members["version"] = "rdskit bundle", 1
	b, err := json.Marshal(members)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "bundle")
	if err := os.WriteFile(file, b, 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

// shell runs a script in which rds-info is the command under test, on a bundle.
func shell(t *testing.T, bundle, script string) string {
	t.Helper()
	command := labtest.Command(t)
	dir := t.TempDir()
	wrapper := "#!/bin/sh\nexec " + command.Path + " --from " + bundle + ` "$@"` + "\n"
	if err := os.WriteFile(filepath.Join(dir, "rds-info"), []byte(wrapper), 0o777); err != nil {
		t.Fatal(err)
	}
	sh := exec.CommandContext(t.Context(), "sh", "-c", script)
	sh.Env = append(command.Env, "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := sh.Output()
	if err != nil {
		t.Fatalf("%q: %v", script, err)
	}
	return strings.TrimSpace(string(out))
}

// Each is in the manner of a script that people run around the C tool.
func TestScriptsGetWhatTheyLookFor(t *testing.T) {
	for _, tt := range []struct {
		name, capture, script, want string
	}{
		{"the monitoring takes a line of two words for a counter", "debian-6.1.192-rxe",
			`rds-info -Icn 2>/dev/null | awk 'NF == 2 && $1 == "send_queued" { print $2 }'`, "9"},
		{"connections that are up have an IPv4-mapped GID", "rxe-6.1.192-dead-peer",
			`rds-info -I | grep ffff | wc -l`, "2"},
		{"connections that hang have none", "rxe-6.1.192-dead-peer",
			`rds-info -I | grep '::' | grep -v ffff | wc -l`, "1"},
		{"with both families those of IPv6 hang too", "rxe-6.1.192-dead-peer",
			`rds-info -aI | grep -c ' ::  *::'`, "2"},
		{"the next sequence numbers of a type of service are columns 4 and 5", "debian-6.1.192-rxe",
			`rds-info -n | awk '$3 == 3 { print $4, $5 }'`, "2 2\n2 2"},
		{"the tests of OFED take the first row whose column 3 has the type of service: NextTX is column 4", "debian-6.1.192-rxe",
			`rds-info -n | awk '{ if ($3 ~ /3/) { print $4; exit } }'`, "2"},
		{"and NextRX column 5", "debian-6.1.192-rxe",
			`rds-info -n | awk '{ if ($3 ~ /0/) { print $5; exit } }'`, "4"},
		{"through a shell more, on the other host", "debian-6.1.192-rxe",
			`sh -c "rds-info -n | awk '{ if (\$3 ~ /3/) { print \$5; exit } }'"`, "2"},
		{"a type of service without a connection gives nothing", "debian-6.1.192-rxe",
			`rds-info -n | awk '{ if ($3 ~ /7/) { print $4; exit } }'`, ""},
		{"RDMA bytes by name", "debian-6.1.192-rxe",
			`rds-info -c | awk '/recv_rdma_bytes/ { r = $2 } /send_rdma_bytes/ { s = $2 } END { print r + s }'`, "0"},
		{"the flags are the last column", "uml-6.1.176-tcp",
			`rds-info -n | awk '$NF !~ /C/ && NR > 3 { print $2 }'`, "10.9.0.99"},
		{"the bytes that nobody has read are the last column", "uml-6.1.176-tcp",
			`rds-info -r | awk 'NR > 3 { sum += $NF } END { print sum }'`, "310"},
		{"a missing table does not fail the run of all", "uml-6.1.176-tcp",
			`rds-info >/dev/null 2>&1; echo $?`, "0"},
		{"and is told of in the words of C", "uml-6.1.176-tcp",
			`rds-info 2>&1 >/dev/null | grep -c '^rds-info: Unable get statistics: Protocol not available$'`, "1"},
		{"a reader that has enough ends it quietly", "uml-6.1.176-tcp",
			`rds-info -c 2>&1 | head -n 1 | wc -c`, "1"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := shell(t, bundleOf(t, tt.capture), tt.script); got != tt.want {
				t.Errorf("%s gives %q, want %q", tt.script, got, tt.want)
			}
		})
	}
}
