package doctor

import "fmt"

// A Finding is what a check says about one thing.
type Finding struct {
	Check   string  `json:"check"`             // the check's name
	Subject string  `json:"subject,omitempty"` // the thing: an address, a sysctl, a connection
	Verdict Verdict `json:"verdict"`
	Reason  string  `json:"reason"`
	Remedy  string  `json:"remedy,omitempty"` // what to do, a command where there is one
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

func (r *report) add(v Verdict, subject, remedy, format string, args ...any) {
	r.findings = append(r.findings, Finding{r.check, subject, v, fmt.Sprintf(format, args...), remedy})
}

func (r *report) ok(subject, format string, args ...any)   { r.add(OK, subject, "", format, args...) }
func (r *report) info(subject, format string, args ...any) { r.add(Info, subject, "", format, args...) }
func (r *report) skip(subject, format string, args ...any) { r.add(Skip, subject, "", format, args...) }

func (r *report) warn(subject, remedy, format string, args ...any) {
	r.add(Warn, subject, remedy, format, args...)
}

func (r *report) fail(subject, remedy, format string, args ...any) {
	r.add(Fail, subject, remedy, format, args...)
}
