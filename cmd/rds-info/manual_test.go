package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rdskit/rdskit/internal/cli"
	"github.com/rdskit/rdskit/internal/doctor"
)

func readManual(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("../../man/rds-info.1")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

func TestTheManualDescribesTheOptions(t *testing.T) {
	if err := cli.CheckManual(app(os.Stdout, os.Stderr), readManual(t)); err != nil {
		t.Error(err)
	}
}

func TestAFindingHasTheMembersOfTheManual(t *testing.T) {
	for _, tt := range []struct {
		name    string
		finding doctor.Finding
		want    string
	}{
		{"all", doctor.Finding{Check: "link", Subject: "eth0", Verdict: doctor.Warn, Reason: "it is down", Remedy: "ip link set eth0 up", Advice: "now"},
			`{"type":"finding","check":"link","subject":"eth0","verdict":"warn","reason":"it is down","remedy":"ip link set eth0 up","advice":"now"}`},
		{"what there is none of is null", doctor.Finding{Check: "socket", Reason: "an RDS socket can be made"},
			`{"type":"finding","check":"socket","subject":null,"verdict":"ok","reason":"an RDS socket can be made","remedy":null,"advice":null}`},
	} {
		got, err := json.Marshal(newDoctorRecord(tt.finding))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(tt.want, string(got)); diff != "" {
			t.Errorf("%s, -want +got:\n%s", tt.name, diff)
		}
	}
	var members map[string]any
	b, err := json.Marshal(newDoctorRecord(doctor.Finding{}))
	if err == nil {
		err = json.Unmarshal(b, &members)
	}
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(readManual(t), "\nprints objects of type\n.Cm finding ,\n")
	section, _, _ = strings.Cut(section, "\n.Pp\n")
	for name := range members {
		if name != "type" && !strings.Contains(section, ".Va "+name) {
			t.Errorf("%s is not in the manual, which has %q", name, section)
		}
	}
}
