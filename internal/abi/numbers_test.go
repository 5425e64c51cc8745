package abi

import (
	"bufio"
	"fmt"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// renamed gives the names of UEK's header that say with another word what
// mainline's says.
var renamed = map[string]string{
	"RDS_CMSG_RDMA_SEND_STATUS": "RDS_CMSG_RDMA_STATUS",
	"RDS_RDMA_SEND_SUCCESS":     "RDS_RDMA_SUCCESS",
	"RDS_RDMA_SEND_CANCELED":    "RDS_RDMA_CANCELED",
	"RDS_RDMA_SEND_DROPPED":     "RDS_RDMA_DROPPED",
	"RDS_RDMA_SEND_OTHER_ERROR": "RDS_RDMA_OTHER_ERROR",
}

func TestEveryNumberOfTheHeadersIsHere(t *testing.T) {
	scope := constants(t)
	for _, header := range []string{"mainline", "uek"} {
		f, err := os.Open("testdata/numbers-" + header + ".txt")
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		lines := 0
		for sc := bufio.NewScanner(f); sc.Scan(); lines++ {
			var name string
			var want int64
			if _, err := fmt.Sscan(sc.Text(), &name, &want); err != nil {
				t.Fatalf("%s: %q: %v", header, sc.Text(), err)
			}
			if n, ok := renamed[name]; ok {
				name = n
			}
			obj := scope.Lookup(name)
			if uek := scope.Lookup("UEK_" + name); uek != nil && header == "uek" {
				obj = uek
			}
			c, ok := obj.(*types.Const)
			if !ok {
				t.Errorf("%s: no constant %s", header, name)
				continue
			}
			if got, _ := constant.Int64Val(c.Val()); got != want {
				t.Errorf("%s: %s is %d, want %d", header, c.Name(), got, want)
			}
		}
		if lines < 70 {
			t.Errorf("%s: only %d numbers in the file", header, lines)
		}
	}
}

// constants type-checks the package's own source, as far as constants need it.
func constants(t *testing.T) *types.Scope {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fset := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	// Imports are not resolved and build tags not applied: errors about them
	// say nothing about the constants.
	conf := types.Config{IgnoreFuncBodies: true, Error: func(error) {}}
	pkg, _ := conf.Check("abi", fset, files, nil)
	return pkg.Scope()
}
