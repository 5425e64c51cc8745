package doctor

import "fmt"

// A Finding is what a check says about one thing.
type Finding struct {
	Check   string // the check's name
	Subject string // the thing: an address, a sysctl, a connection; may be empty
	Verdict Verdict
	Reason  string
	// Remedy is a command for a shell of root. It is empty if nothing is wrong, or no command
	// helps.
	Remedy string
	// Advice is what else to do, or what to look for in what the command prints; may be empty.
	Advice string
}

// A Verdict is how a check ended.
type Verdict int

const (
	OK   Verdict = iota
	Info         // worth knowing, and no fault
	Skip         // could not be checked, or needs no check
	Warn         // works, but not as it should
	Fail         // does not work
)

// String returns the verdict in lower case.
func (v Verdict) String() string {
	switch v {
	case OK:
		return "ok"
	case Info:
		return "info"
	case Skip:
		return "skip"
	case Warn:
		return "warn"
	case Fail:
		return "fail"
	}
	return fmt.Sprintf("Verdict(%d)", int(v))
}

// MarshalText returns the verdict in lower case.
func (v Verdict) MarshalText() ([]byte, error) { return []byte(v.String()), nil }

// Bad reports whether the verdict is a fault.
func (v Verdict) Bad() bool { return v >= Warn }

// A report is what one check finds.
type report struct {
	check    string
	findings []Finding
}

func (r *report) add(v Verdict, subject string, do remedy, format string, args ...any) {
	r.findings = append(r.findings, Finding{r.check, subject, v, fmt.Sprintf(format, args...), do.command, do.advice})
}

func (r *report) ok(subject, format string, args ...any) { r.add(OK, subject, none, format, args...) }
func (r *report) info(subject, format string, args ...any) {
	r.add(Info, subject, none, format, args...)
}
func (r *report) skip(subject, format string, args ...any) {
	r.add(Skip, subject, none, format, args...)
}

func (r *report) warn(subject string, do remedy, format string, args ...any) {
	r.add(Warn, subject, do, format, args...)
}

func (r *report) fail(subject string, do remedy, format string, args ...any) {
	r.add(Fail, subject, do, format, args...)
}
