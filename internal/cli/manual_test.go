package cli

import (
	"strings"
	"testing"
)

func TestCheckManual(t *testing.T) {
	const page = `.Sh OPTIONS
.Bl -tag
.It Fl c , -count Ar N
Not
.Fl x .
.It Fl i , Fl -interval Ar TIME
.It Fl Q , -tos Ar LIST
.It Fl q , -quiet
.It Fl -json
.It Fl -an-option-with-a-long-name
.It Fl h , -help
.It Fl -version
.El
`
	for _, tt := range []struct {
		name     string
		old, new string
		want     string // "" if the page is right
	}{
		{"a page with all options", "", "", ""},
		{"an option that is missing", ".It Fl -json\n", "", "--json is not described"},
		{"a letter that is missing", "Fl q , -quiet", "Fl -quiet", "-q is not described"},
		{"an option that does not exist", "Fl -json", "Fl -json , -yaml", "--yaml is described and is no option"},
		{"a value that is missing", " Ar N", "", "--count takes a value: true, and the page says false"},
		{"a value that does not exist", "Fl -json", "Fl -json Ar FILE", "--json takes a value: false, and the page says true"},
	} {
		err := CheckManual(testApp(new(values), nil), strings.Replace(page, tt.old, tt.new, 1))
		switch {
		case err == nil && tt.want != "", err != nil && tt.want == "":
			t.Errorf("%s: got %v", tt.name, err)
		case err != nil && !strings.Contains(err.Error(), tt.want):
			t.Errorf("%s: got %v, want %q", tt.name, err, tt.want)
		}
	}
}
