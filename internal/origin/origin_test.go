package origin

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		"https://fairlead.example.org": "https://fairlead.example.org", "https://fairlead.example.org/": "https://fairlead.example.org",
		"HTTPS://Fairlead.Example.org:443": "https://fairlead.example.org", "https://box:8443": "https://box:8443",
		"http://127.0.0.1:8000": "http://127.0.0.1:8000",
		"http://localhost:80":   "http://localhost", "http://[::1]:8000": "http://[::1]:8000",
		"https://[2001:db8::1]": "https://[2001:db8::1]", "https://10.0.0.7": "https://10.0.0.7",
		"https://xn--frlead-bua.example": "https://xn--frlead-bua.example", "http://[::1]": "http://[::1]",
	} {
		got, err := Parse(text)
		if err != nil || got.String() != want {
			t.Errorf("%s: %s, %v; want %s", text, got, err, want)
		}
		again, err := Parse(got.String())
		if err != nil || again != got {
			t.Errorf("%s is read again as %s, %v", got, again, err)
		}
	}
	for text, want := range map[string]string{
		"": "is not an origin", "fairlead.example.org": "is not an origin", "https:fairlead.example.org": "is not an origin",
		"//fairlead.example.org":     "does not begin with https",
		"ftp://fairlead.example.org": "does not begin with https", "http://fairlead.example.org": "use https",
		"http://10.0.0.7": "use https", "null": "is not an origin",
		"https://a.example/fairlead": "has more than", "https://a.example?x": "has more than", "https://a.example?": "has more than",
		"https://a.example#": "has more than", "https://ann@a.example": "has more than",
		"https://*.example.org": "has a pattern", "*": "is not an origin", "https://*": "has a pattern",
		"https://a.example:0": "is not a number", "https://a.example:00443": "is not a number",
		"https://a.example:70000": "is not a number", "https://a.example:": "no port",
		"https://fähre.example": "in another way", "https://a..example": "in another way", "https://-a.example": "in another way",
		"https://a.example.": "in another way",
		"http://127.1:8000":  "in another way", "http://0x7f000001": "in another way", "http://2130706433": "in another way",
		"http://[::ffff:127.0.0.1]:1": "in another way",
		"http://[0:0:0:0:0:0:0:1]:1":  "in another way", "http://[fe80::1%25lo]:1": "in another way",
		"https://" + strings.Repeat("a.", 127) + "example": "in another way",
		"http://localhost.evil.example":                    "use https", "https://a_b.example": "in another way",
		"https://a b.example": "is not an origin",
	} {
		if got, err := Parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %s, %v; want an error with %q", text, got, err, want)
		}
	}
}

func TestAt(t *testing.T) {
	parse := func(text string) Origin {
		o, err := Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	for _, c := range []struct {
		origin, host string
		at           bool
	}{
		{"https://a.example", "a.example", true},
		{"https://a.example", "A.Example:443", true},
		{"https://a.example", "a.example:80", false},
		{"https://a.example", "a.example:", false},
		{"https://a.example", "a.example.", false},
		{"https://a.example", "b.a.example", false},
		{"https://a.example", "a.example.evil.example", false},
		{"https://a.example", "", false},
		{"https://a.example:8443", "a.example:8443", true},
		{"https://a.example:8443", "a.example", false},
		{"https://[2001:db8::1]", "[2001:db8::1]", true},
		{"https://[2001:db8::1]", "[2001:db8::1]:443", true},
		{"https://[2001:db8::1]", "2001:db8::1", false},
		{"http://127.0.0.1:8000", "127.0.0.1:8000", true},
		{"http://127.0.0.1:8000", "localhost:8000", false},
	} {
		if parse(c.origin).At(c.host) != c.at {
			t.Errorf("%q at %s: want %t", c.host, c.origin, c.at)
		}
	}
	if (Origin{}).At("") || (Origin{}).At("a.example") {
		t.Error("no origin has a host")
	}
}

func TestLocalAddress(t *testing.T) {
	for text, want := range map[string]bool{
		"http://127.0.0.1:7466": true, "http://[::1]:7466": true, "http://localhost:1": true, "http://127.0.0.1": false,
		"https://127.0.0.1:7466": false,
		"http://127.0.0.1:7466/": false, "http://10.0.0.7:7466": false, "http://evil.example:7466": false, "javascript:alert(1)": false,
		"http://127.0.0.1:7466@evil.example": false, "": false,
	} {
		if LocalAddress(text) != want {
			t.Errorf("%q: want %t", text, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, text := range []string{"https://fairlead.example.org", "http://[::1]:8000", "https://a@b:1", "http://127.1", "https://xn--a:0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		o, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(o.String())
		if err != nil || again != o {
			t.Fatalf("%q becomes %s, which is read as %s, %v", text, o, again, err)
		}
		if host := strings.TrimPrefix(o.String(), o.scheme+"://"); !o.At(host) {
			t.Fatalf("%q is not at %s", host, o)
		}
		if o.scheme != "https" && !o.Local() {
			t.Fatalf("%s is not on this machine and has no TLS", o)
		}
	})
}
