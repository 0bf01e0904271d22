package network

import (
	"net/netip"
	"testing"
)

// Each name and port has one answer.
func TestDecide(t *testing.T) {
	setting, err := Parse([]string{"example.org", "*.corp.example.com", "api.example.net:8443", "localhost:11434", "10.0.0.5:8080", "[::1]:9"})
	if err != nil {
		t.Fatal(err)
	}
	r := setting.Rules("", "")
	for _, c := range []struct {
		name string
		port int
		want string
	}{
		{"example.org", 443, "allowed "},
		{"EXAMPLE.org", 80, "allowed "},
		{"www.example.org", 443, "ask not listed"},
		{"a.corp.example.com", 443, "allowed "},
		{"corp.example.com", 443, "ask not listed"},
		{"api.example.net", 8443, "allowed "},
		{"api.example.net", 443, "ask not listed"},
		{"example.org", 22, "refused port"},
		{"localhost", 11434, "allowed "},
		{"localhost", 443, "refused local name"},
		{"10.0.0.5", 8080, "allowed "},
		{"10.0.0.5", 443, "refused address"},
		{"0:0:0:0:0:0:0:1", 9, "allowed "},
		{"example.org.", 443, "refused odd name"},
		{"0x7f.1", 443, "refused odd name"},
		{"2130706433", 443, "refused odd name"},
	} {
		v := r.Decide(c.name, c.port)
		if got := string(v.Answer) + " " + string(v.Reason); got != c.want {
			t.Errorf("%s at %d: %s, not %s", c.name, c.port, got, c.want)
		}
	}
}

func TestTableOfRanges(t *testing.T) {
	for _, row := range special {
		if prefix, err := netip.ParsePrefix(row.prefix); err != nil || prefix.Masked() != prefix {
			t.Errorf("%s is no prefix: %v", row.prefix, err)
		}
	}
}
