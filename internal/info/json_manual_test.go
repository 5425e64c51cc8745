package info

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// records are one of each that JSON and Diff make.
var records = []any{
	counterRecord{}, connectionRecord{}, socketRecord{}, messageRecord{}, tcpRecord{}, ibRecord{}, pathRecord{},
	diffRecord{}, counterDeltaRecord{}, connectionDeltaRecord{}, socketDeltaRecord{}, settingRecord{},
}

// jsonNames adds the names of the fields of a type, and of those below, to names.
func jsonNames(t reflect.Type, names map[string]bool) {
	switch t.Kind() {
	case reflect.Slice, reflect.Pointer:
		jsonNames(t.Elem(), names)
	case reflect.Struct:
		if value, ok := t.FieldByName("Value"); ok && strings.HasPrefix(t.Name(), "Optional[") {
			jsonNames(value.Type, names)
			return
		}
		for f := range t.Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if name != "" {
				names[name] = true
			}
			if name != "" || f.Anonymous {
				jsonNames(f.Type, names)
			}
		}
	}
}

func TestTheManualNamesEachFieldOfJSON(t *testing.T) {
	page, err := os.ReadFile("../../man/rds-info.1")
	if err != nil {
		t.Fatal(err)
	}
	names := make(map[string]bool)
	for _, r := range records {
		jsonNames(reflect.TypeOf(r), names)
	}
	if len(names) < 100 {
		t.Errorf("only %d names", len(names))
	}
	_, section, _ := strings.Cut(string(page), "\n.Sh JSON\n")
	section, _, _ = strings.Cut(section, "\n.Sh EXIT STATUS\n")
	for name := range names {
		if !regexp.MustCompile(`\b` + name + `\b`).MatchString(section) {
			t.Errorf("%s is not in the section JSON of the manual", name)
		}
	}
}
