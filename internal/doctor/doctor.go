// Package doctor finds out why RDS does not work on a host, and what to do about
// it, in the order in which a specialist would look. The checks judge [Facts],
// which [Look] gathers on this host and a bundle brings from another.
package doctor

// checks are the checks in their order.
var checks = []struct {
	name string
	run  func(*Facts, *report)
}{
	{"socket", checkSocket},
	{"module", checkModules},
	{"kernel", checkKernel},
	{"namespace", checkNamespace},
	{"link", checkLinks},
	{"address", checkAddresses},
	{"listener", checkListener},
	{"sysctl", checkSysctls},
	{"parameter", checkParameters},
	{"buffer", checkBuffers},
	{"memlock", checkLockedMemory},
	{"rdma", checkRDMA},
	{"connection", checkConnections},
	{"receiver", checkReceivers},
	{"counter", checkCounters},
	{"host", checkHost},
	{"route", checkRoute},
	{"neighbor", checkNeighbor},
	{"ping", checkPings},
}

// Examine runs the checks. Each finds one thing or several; those about a host
// find nothing if there is none.
func Examine(f *Facts) []Finding {
	var all []Finding
	for _, c := range checks {
		r := &report{check: c.name}
		c.run(f, r)
		all = append(all, r.findings...)
	}
	return all
}
