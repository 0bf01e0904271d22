package network

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// coverage counts the rows that the tests of this package took.
var coverage = machinetest.NewCoverage()

// TestMain also fails if no test took some row of the table.
func TestMain(m *testing.M) { coverage.Main(m, machinetest.Numbered("A", int(wanteds)*int(saids))) }

func TestMatrix(t *testing.T) { golden.Check(t, filepath.Join("testdata", "matrix.txt"), matrix()) }

// The words of the table for people.
var (
	wantedWords = [wanteds]string{"public, 443 or 80", "public, other port", "local name", "address", "odd name"}
	saidWords   = [saids]string{"none", "nothing", "all", "covered", "named"}
)

// matrix is the table for people.
func matrix() string {
	var b strings.Builder
	for w, rows := range table {
		fmt.Fprintf(&b, "%s\n", wantedWords[w])
		for s, row := range rows {
			line := fmt.Sprintf("  %-8s %-4s %-8s %-11s %s", saidWords[s], row.ID, row.Answer, row.Reason, row.Why)
			b.WriteString(strings.TrimRight(line, " ") + "\n")
		}
	}
	return b.String()
}

// sets are the rules of testdata/names.txt.
var sets = []struct {
	name  string
	rules Rules
}{
	{"none", Setting{Word: None, Hosts: []Host{{Name: "example.org", Named: true}}}.Rules("anthropic", "http://localhost:1")},
	{"empty", Rules{}},
	{"all", must("all").Rules("", "")},
	{"model", must("model").Rules("anthropic", "")},
	{"packages", must("packages").Rules("anthropic", "")},
	{"base", must("model").Rules("openai", "http://localhost:11434/v1")},
	{"named", must("example.org", "*.example.net", "*.example.com:8443", "db.example.org:5432", "localhost:3000", "nas.local",
		"build.internal:8080", "10.0.0.5:8080", "[2001:db8::1]:9", "169.254.169.254").Rules("", "")},
	// What a program of another version, or an error of our own, could send: hosts that Parse does not make.
	{"wrong", Rules{Hosts: []Host{
		{Name: "127.1", Named: true},
		{Name: "0x7f.1"},
		{Name: "example.org.", Named: true},
		{Name: "10.0.0.5"},
		{Name: "*.internal"},
		{Name: ""},
		{Name: "localhost"},
	}}},
}

func must(words ...string) Setting {
	s, err := Parse(words)
	if err != nil {
		panic(err)
	}
	return s
}

// testdata/names.txt has names and ports of every kind, with the answer of each set of rules.
func TestDecide(t *testing.T) {
	path := filepath.Join("testdata", "names.txt")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, "  ") { // an answer: written again below
			continue
		}
		b.WriteString(line + "\n")
		target, is := strings.CutPrefix(line, "> ")
		if !is {
			continue
		}
		name, port := splitTarget(t, target)
		answers := map[string][]string{}
		var order []string
		for _, set := range sets {
			v := set.rules.Decide(name, port)
			coverage.Row(v.ID)
			answer := strings.TrimSpace(string(v.Answer) + " " + string(v.Reason))
			if v.Answer == Allowed && v.Host.Named {
				answer += " named"
			}
			if answers[answer] == nil {
				order = append(order, answer)
			}
			answers[answer] = append(answers[answer], set.name)
		}
		for _, answer := range order {
			b.WriteString("  " + answer + ": " + strings.Join(answers[answer], ", ") + "\n")
		}
	}
	golden.Check(t, path, b.String())
}

func splitTarget(t *testing.T, target string) (string, int) {
	t.Helper()
	i := strings.LastIndexByte(target, ' ')
	_, port, err := splitPort("x:" + target[i+1:])
	if err != nil {
		t.Fatalf("%q: %v", target, err)
	}
	return target[:i], port
}

// Each way to write a host has one meaning, and Words writes it so that Parse reads it again.
func TestParse(t *testing.T) {
	for text, want := range map[string]Setting{
		"none":                {Word: None},
		"all":                 {Word: All},
		"packages model":      {Model: true, Packages: true},
		"example.org":         {Hosts: []Host{{Name: "example.org", Named: true}}},
		"Example.ORG:443":     {Hosts: []Host{{Name: "example.org", Port: 443, Named: true}}},
		"*.example.org:8443":  {Hosts: []Host{{Name: "*.example.org", Port: 8443}}},
		"localhost:11434":     {Hosts: []Host{{Name: "localhost", Port: 11434, Named: true}}},
		"nas.local":           {Hosts: []Host{{Name: "nas.local", Named: true}}},
		"10.0.0.5":            {Hosts: []Host{{Name: "10.0.0.5", Named: true}}},
		"2001:DB8:0::1":       {Hosts: []Host{{Name: "2001:db8::1", Named: true}}},
		"[::1]:65535":         {Hosts: []Host{{Name: "::1", Port: 65535, Named: true}}},
		"xn--bcher-kva.ch":    {Hosts: []Host{{Name: "xn--bcher-kva.ch", Named: true}}},
		"3com.com 1.2.3.4.zz": {Hosts: []Host{{Name: "3com.com", Named: true}, {Name: "1.2.3.4.zz", Named: true}}},
	} {
		got, err := Parse(strings.Fields(text))
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", text, err, diff)
		}
		if again, err := Parse(got.Words()); err != nil || cmp.Diff(want, again) != "" {
			t.Errorf("%s: its words %q: %v, %v", text, got.Words(), again, err)
		}
	}
}

// What is refused says what to write; TestParse has the twins.
func TestParseFaults(t *testing.T) {
	many := make([]string, HostsMax+1)
	for i := range many {
		many[i] = "h" + strings.Repeat("x", i%50) + string(rune('a'+i/50)) + ".example.org"
	}
	if _, err := Parse(many[:HostsMax]); err != nil {
		t.Errorf("as many as there may be: %v", err)
	}
	for _, c := range []struct{ text, want string }{
		{"", "the list is empty; write none"},
		{"none packages", "none stands beside other items; write it alone"},
		{"model all", "all stands beside other items"},
		{"model model", `"model" is there twice`},
		{"x.org X.org", `"x.org" is there twice`},
		{strings.Join(many, " "), "there are 201 hosts; the most is 200"},
		{"pip3", `"pip3" is neither model, packages, none nor all, and a host's name in one part needs its port, such as "pip3:443"`},
		{"https://x.org/a", `is an address of a page; write its host alone, such as "x.org"`},
		{"x.org/a", "has a path or a range; write one host"},
		{"10.0.0.0/8", "has a path or a range; write one host"},
		{"x.org:", "has no port from 1 to 65535 after the colon"},
		{"x.org:0", "has no port"},
		{"x.org:0443", "has no port"},
		{"x.org:+443", "has no port"},
		{"x.org:65536", "has no port"},
		{"[::1", "has brackets without an IPv6 address in them"},
		{"[x.org]:443", "has brackets without an IPv6 address in them"},
		{"[10.0.0.5]:443", "has brackets without an IPv6 address in them"},
		{"[::1]443", "has no port"},
		{"fe80::1%eth0", "is not the name of a host"},
		{"::ffff:10.0.0.5", "is an IPv4 address inside an IPv6 one; write 10.0.0.5"},
		{"0.0.0.0:80", "is the address of no single host"},
		{"[::]:80", "is the address of no single host"},
		{"255.255.255.255", "is the address of no single host"},
		{"224.0.0.1", "is the address of no single host"},
		{"*", "has a star in it"},
		{"*.org", "is no pattern of public names"},
		{"*.corp.internal", "is no pattern of public names"},
		{"*.0.0.1", "is no pattern of public names"},
		{"a.*.org", "has a star in it"},
		{"*x.example.org", "has a star in it"},
		{"bücher.ch", "has letters outside of ASCII; write the name in its ASCII form"},
		{"example.org.", "ends with a dot"},
		{"127.1", "is an address in an odd form; write four decimal numbers"},
		{"0x7f000001:80", "is an address in an odd form"},
		{"2130706433:80", "is an address in an odd form"},
		{"127.0.0.01", "is an address in an odd form"},
		{"0x7f.0.0.0x1", "is an address in an odd form"},
		{"a..org", "is not the name of a host"},
		{".org", "is not the name of a host"},
		{"-a.org", "is not the name of a host"},
		{"a-.org", "is not the name of a host"},
		{"a_b.org", "is not the name of a host"},
		{"a@b.org", "is not the name of a host"},
		{strings.Repeat("a", 64) + ".org", "is not the name of a host"},
		{strings.Repeat("abcdefghi.", 25) + "abcd", "is not the name of a host"},
		{"a:b:c", "is not the name of a host"},
	} {
		if got, err := Parse(strings.Fields(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; not %q", c.text, got, err, c.want)
		}
	}
	if _, err := Parse([]string{strings.Repeat("a", 300) + "\n"}); err == nil || strings.Contains(err.Error(), "\n") || len(err.Error()) > 300 {
		t.Errorf("a long text with a line break: %v", err)
	}
}

// The rules have what people named first, then the provider, then the registries; each host once.
func TestRules(t *testing.T) {
	setting := must("model", "packages", "registry.npmjs.org", "internal.example.org:8443")
	rules := setting.Rules("openai", "")
	var names []string
	for _, h := range rules.Hosts {
		names = append(names, h.String())
		if named := len(names) <= 2; h.Named != named {
			t.Errorf("%s: named is %v", h, h.Named)
		}
	}
	if want := []string{"registry.npmjs.org", "internal.example.org:8443", "api.openai.com"}; !slices.Equal(names[:3], want) {
		t.Errorf("%q does not begin with %q", names, want)
	}
	if len(names) != len(slices.Compact(slices.Sorted(slices.Values(names))))+1 { // the registry, as named and by the table
		t.Errorf("hosts that are there twice: %q", names)
	}
	text, err := json.Marshal(rules)
	var again Rules
	if err != nil || json.Unmarshal(text, &again) != nil || cmp.Diff(rules, again) != "" {
		t.Errorf("%s: %v, %v", text, err, again)
	}
	for base, want := range map[string]string{
		"":                               "api.anthropic.com",
		"http://localhost:11434/v1":      "localhost:11434",
		"https://Gateway.example.org/x":  "gateway.example.org:443",
		"http://[fd00::1]/v1":            "[fd00::1]:80",
		"http://10.0.0.5:8080?x":         "10.0.0.5:8080",
		"http://user@localhost:1":        "api.anthropic.com", // no program gets a key in an address
		"ftp://localhost:1":              "api.anthropic.com",
		"https://*.example.org":          "api.anthropic.com",
		"{\"provider\": \"http://x.y\"}": "api.anthropic.com",
	} {
		hosts := must("model").Rules("anthropic", base).Hosts
		if len(hosts) == 0 || hosts[0].String() != want || hosts[0].Named != (want != "api.anthropic.com") {
			t.Errorf("base %q: %v, not %s", base, hosts, want)
		}
	}
	isNamed := func(h Host) bool { return h.Named }
	if hosts := must("packages").Rules("anthropic", "http://localhost:1").Hosts; slices.ContainsFunc(hosts, isNamed) {
		t.Errorf("the base counts without model: %v", hosts)
	}
	if hosts := must("all").Rules("", "http://localhost:1").Hosts; len(hosts) != 1 || !hosts[0].Named {
		t.Errorf("the base does not count with all: %v", hosts)
	}
	if hosts := must("model").Rules("none such", "").Hosts; len(hosts) != 0 {
		t.Errorf("an unknown provider has hosts: %v", hosts)
	}
}

// Each reason has words.
func TestSentences(t *testing.T) {
	for _, rows := range table {
		for _, row := range rows {
			if (row.Reason == "") != (row.Answer == Allowed) || (row.Reason == "") != (row.Reason.Sentence() == "") {
				t.Errorf("%+v: %q", row, row.Reason.Sentence())
			}
		}
	}
}

// Registries are hosts that the rules take for public ones.
func TestRegistries(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range Registries() {
		for _, name := range r.Hosts {
			if spelling(name) != plain || seen[name] {
				t.Errorf("%s: %s is no public name, or is there twice", r.Name, name)
			}
			seen[name] = true
		}
	}
	for _, name := range []string{"github.com", "objects.githubusercontent.com", "gitlab.com", "huggingface.co", "ghcr.io", "docker.io"} {
		if seen[name] {
			t.Errorf("%s is a way out for data that everybody can open", name)
		}
	}
}

// Property: whatever is parsed and decided, no address of a special range passes for a name that no person named.
func FuzzDecide(f *testing.F) {
	for _, seed := range []struct {
		host, name string
		addr       []byte
	}{
		{"example.org", "example.org", []byte{10, 0, 0, 5}},
		{"*.example.org", "a.example.org", []byte{127, 0, 0, 1}},
		{"all", "Example.ORG", []byte{169, 254, 169, 254}},
		{"packages", "pypi.org", append(make([]byte, 15), 1)},
		{"localhost:80", "localhost", []byte{127, 0, 0, 1}},
		{"10.0.0.5:80", "0xa.5", []byte{10, 0, 0, 5}},
		{"[::1]:443", "::ffff:127.0.0.1", []byte{127, 0, 0, 1}},
	} {
		f.Add(seed.host, seed.name, 443, seed.addr)
	}
	f.Fuzz(func(t *testing.T, host, name string, port int, raw []byte) {
		setting, err := Parse(strings.Fields(host))
		if err != nil {
			return
		}
		if again, err := Parse(setting.Words()); err != nil || cmp.Diff(setting, again) != "" {
			t.Fatalf("%q: its words %q give %v, %v", host, setting.Words(), again, err)
		}
		rules := setting.Rules("anthropic", "")
		v := rules.Decide(name, port)
		if other := rules.Decide(strings.ToUpper(name), port); isASCII(name) && other != v {
			t.Fatalf("%q: %v, and in capitals %v", name, v, other)
		}
		if v.Answer != Allowed {
			return
		}
		if !v.Host.Named && (spelling(strings.ToLower(name)) != plain || !IsWeb(port) && v.Host.Port != port) {
			t.Fatalf("%q allows %q at %d by %v", host, name, port, v.Host)
		}
		addr, ok := netip.AddrFromSlice(raw)
		if !ok || rules.Address(v.Host, addr) != nil {
			return
		}
		if isSpecial(addr) && !v.Host.Named {
			t.Fatalf("%q allows %s for %q by %v", host, addr, name, v.Host)
		}
	})
}

func isASCII(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > 127 })
}

// isSpecial is an independent and coarser opinion than the table: that of the standard library.
func isSpecial(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified()
}
