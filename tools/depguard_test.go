// Package tools_test proves the import rules of the main module.
package tools_test

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	depguard "github.com/OpenPeeDeeP/depguard/v2"
	"go.yaml.in/yaml/v3"
	"golang.org/x/tools/go/analysis"
)

const module = "github.com/rdskit/rdskit/"

// rules compiles the file that the linter reads.
func rules(t *testing.T) *analysis.Analyzer {
	t.Helper()
	f, err := os.Open("../.depguard.yml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var settings depguard.LinterSettings
	d := yaml.NewDecoder(f)
	d.KnownFields(true)
	if err := d.Decode(&settings); err != nil {
		t.Fatal(err)
	}
	a, err := depguard.NewAnalyzer(&settings)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// lint runs the rules over one file with one import.
func lint(t *testing.T, a *analysis.Analyzer, file, path string) (findings []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, filepath.Join("/home/me/rdskit", file), fmt.Sprintf("package p; import %q", path), 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = a.Run(&analysis.Pass{
		Analyzer: a,
		Fset:     fset,
		Files:    []*ast.File{f},
		Report:   func(d analysis.Diagnostic) { findings = append(findings, d.Message) },
	})
	if err != nil {
		t.Fatal(err)
	}
	return findings
}

func TestImportRulesBite(t *testing.T) {
	a := rules(t)
	tests := []struct {
		file    string
		refused []string
		allowed []string
	}{{
		file:    "internal/abi/message.go",
		refused: []string{"net", "net/http", "os", "os/exec", "syscall", "unsafe", "golang.org/x/sys/unix", module + "cmsg", module + "internal/sys", "testing"},
		allowed: []string{"encoding/binary", "fmt", "net/netip"},
	}, {
		file:    "cmsg/parse.go",
		refused: []string{"net", "os", "syscall", "unsafe", "golang.org/x/sys/unix", module + "internal/sys", module + "rdssock"},
		allowed: []string{"errors", "iter", "net/netip", module + "internal/abi"},
	}, {
		file:    "internal/sys/msg_linux.go",
		refused: []string{module + "rdssock", module + "internal/route", "github.com/mdlayher/netlink", "github.com/google/go-cmp/cmp", "golang.org/x/sys/cpu"},
		allowed: []string{"unsafe", "syscall", "golang.org/x/sys/unix", "github.com/mdlayher/socket", module + "internal/abi"},
	}, {
		file:    "internal/route/lookup_linux.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix", "github.com/mdlayher/socket", "github.com/mdlayher/netlink/nltest", module + "internal/abi", module + "rdssock"},
		allowed: []string{"net", "syscall", "github.com/mdlayher/netlink", "github.com/jsimonetti/rtnetlink/v2", module + "internal/sys"},
	}, {
		file:    "internal/route/lookup_linux_test.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix"},
		allowed: []string{"testing", "github.com/google/go-cmp/cmp", "github.com/mdlayher/netlink/nltest", module + "internal/labtest"},
	}, {
		file:    "internal/rdmadev/device.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix", "github.com/jsimonetti/rtnetlink/v2", module + "rdma"},
		allowed: []string{"github.com/mdlayher/netlink"},
	}, {
		file:    "internal/tcpdiag/diag_linux.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix", "github.com/jsimonetti/rtnetlink/v2", module + "rdsinfo"},
		allowed: []string{"syscall", "github.com/mdlayher/netlink", module + "internal/nlconn"},
	}, {
		file: "rdssock/conn_linux.go",
		refused: []string{
			"unsafe", "golang.org/x/sys/unix", "github.com/mdlayher/socket", "github.com/mdlayher/netlink", "testing", "github.com/google/go-cmp/cmp",
			module + "rdma", module + "internal/ping", module + "internal/cli", module + "internal/lab", module + "internal/labtest",
		},
		allowed: []string{"net", "syscall", module + "cmsg", module + "internal/abi", module + "internal/sys", module + "internal/route"},
	}, {
		file:    "rdssock/conn_test.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix", "github.com/mdlayher/socket", "github.com/stretchr/testify/assert"},
		allowed: []string{"testing", "github.com/google/go-cmp/cmp", "golang.org/x/net/nettest", module + "internal/labtest", module + "internal/sys"},
	}, {
		file:    "rdsinfo/snapshot.go",
		refused: []string{"unsafe", module + "rdma", module + "internal/stress", "github.com/mdlayher/netlink", "github.com/prometheus/client_golang/prometheus"},
		allowed: []string{module + "internal/abi", module + "internal/sys", module + "internal/tcpdiag"},
	}, {
		file:    "rdma/region_linux.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix", module + "rdsinfo", module + "internal/stress"},
		allowed: []string{module + "rdssock", module + "cmsg", module + "internal/rdmadev"},
	}, {
		file: "internal/ping/ping.go",
		refused: []string{
			"unsafe", "testing", "golang.org/x/sys/unix", "github.com/urfave/cli/v2", "github.com/mdlayher/netlink", "github.com/florianl/go-tc",
			module + "internal/sys", module + "internal/lab", module + "internal/labtest", "example.com/other",
		},
		allowed: []string{module + "rdssock", module + "cmsg", module + "internal/route", "github.com/HdrHistogram/hdrhistogram-go"},
	}, {
		file:    "internal/stress/wire/header.go",
		refused: []string{"unsafe", module + "internal/sys", module + "internal/lab/job"},
		allowed: []string{module + "rdssock"},
	}, {
		file:    "internal/cli/app.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix", module + "internal/lab"},
		allowed: []string{"github.com/urfave/cli/v2"},
	}, {
		file:    "internal/lab/guest/init_linux.go",
		refused: []string{"testing", "github.com/urfave/cli/v2", "example.com/other"},
		allowed: []string{"unsafe", "golang.org/x/sys/unix", "github.com/mdlayher/netlink", "github.com/florianl/go-tc", module + "internal/lab/job"},
	}, {
		file:    "internal/labtest/need.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix"},
		allowed: []string{"testing", module + "internal/lab/hosts"},
	}, {
		file: "cmd/rds-ping/main.go",
		refused: []string{
			"unsafe", "golang.org/x/sys/unix", "github.com/urfave/cli/v2", "github.com/HdrHistogram/hdrhistogram-go",
			module + "cmsg", module + "internal/abi", module + "internal/sys", module + "internal/lab", module + "internal/labtest",
		},
		allowed: []string{"os", module + "internal/cli", module + "internal/ping", module + "rdssock"},
	}, {
		file:    "cmd/rds-lab/main_linux.go",
		refused: []string{"unsafe", "github.com/urfave/cli/v2", module + "internal/labtest"},
		allowed: []string{module + "internal/lab", module + "internal/cli"},
	}, {
		file:    "newpackage/file.go",
		refused: []string{"unsafe", module + "cmsg", module + "internal/abi", "golang.org/x/net/nettest"},
		allowed: []string{"net"},
	}, {
		file:    "examples/echo/main.go",
		refused: []string{"unsafe", "golang.org/x/sys/unix", "github.com/urfave/cli/v2"},
		allowed: []string{module + "rdssock", module + "cmsg"},
	}}
	for _, tt := range tests {
		for _, path := range tt.refused {
			if lint(t, a, tt.file, path) == nil {
				t.Errorf("%s may import %s", tt.file, path)
			}
		}
		for _, path := range tt.allowed {
			if f := lint(t, a, tt.file, path); f != nil {
				t.Errorf("%s may not import %s: %q", tt.file, path, f)
			}
		}
	}
}

// The linter takes its built-in rules when it does not find the file.
func TestLinterReadsTheRules(t *testing.T) {
	dir := t.TempDir()
	config, err := os.ReadFile("../.depguard.yml")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		".depguard.yml":   string(config),
		"go.mod":          "module github.com/rdskit/rdskit\n\ngo 1.26\n",
		"rdssock/conn.go": "package rdssock\n\nimport _ \"unsafe\"\n",
		"rdssock/addr.go": "package rdssock\n\nimport _ \"net/netip\"\n",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	linter := filepath.Join(dir, "depguard")
	if out, err := exec.Command("go", "build", "-o", linter, "github.com/OpenPeeDeeP/depguard/v2/cmd/depguard").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cmd := exec.Command(linter, "./...")
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if _, ok := errors.AsType[*exec.ExitError](err); !ok {
		t.Errorf("the linter passes a file that imports unsafe (%v): %s", err, out)
	}
	if lines := strings.Count(string(out), "is not allowed"); lines != 1 || !strings.Contains(string(out), "only internal/sys and the lab may use it") {
		t.Errorf("want one finding about unsafe, got: %s", out)
	}
}
