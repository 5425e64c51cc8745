package rdssock_test

import (
	"io"
	"os"
	"testing"
)

// The examples need RDS, so they have no Output comments, which would run
// them outside the lab.
func TestExamplesPrintWhatTheyPromise(t *testing.T) {
	needLab(t, 0)
	for _, tt := range []struct {
		name    string
		example func()
		want    string
	}{
		{"package", Example, "hello from 127.0.0.1\n"},
		{"Listen_errors", ExampleListen_errors, "not an address of this host\n"},
		{"Conn_Flush", ExampleConn_Flush, "acknowledged\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := stdoutOf(t, tt.example); got != tt.want {
				t.Errorf("it printed %q, want %q", got, tt.want)
			}
		})
	}
}

// stdoutOf returns what f prints, which a pipe must hold.
func stdoutOf(t *testing.T, f func()) string {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	stdout := os.Stdout
	os.Stdout = w
	f()
	os.Stdout = stdout
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	printed, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return string(printed)
}
