package hosts

import "testing"

func TestParseTakesNamesAsTheyAreWritten(t *testing.T) {
	for name, n := range map[string]int{
		"h1": 1, "h250": 250,
		"": 0, "h": 0, "h0": 0, "h01": 0, "h-1": 0, "h+1": 0, "h251": 0, "h1 ": 0, "H1": 0, "1": 0, "init": 0, "h1/../x": 0,
	} {
		h, err := Parse(name)
		if h.N != n || (err == nil) != (n > 0) {
			t.Errorf("%q is %v, %v; want %d", name, h, err, n)
		}
		if err == nil && h.Name() != name {
			t.Errorf("%q is named %q", name, h.Name())
		}
	}
}

func TestAddressesEndInTheNumber(t *testing.T) {
	h := Host{N: 250}
	if a, b := h.IPv4().String(), h.IPv6().String(); a != "10.9.0.250" || b != "fd00::250" {
		t.Errorf("%s, %s", a, b)
	}
	const want = "127.0.0.1\tlocalhost lab\n::1\tlocalhost\n10.9.0.1\th1\nfd00::1\th1\n10.9.0.2\th2\nfd00::2\th2\n"
	if got := EtcHosts("lab", 2); got != want {
		t.Errorf("/etc/hosts is %q, want %q", got, want)
	}
}
