package sandbox

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// The profile of a session: what is denied by default, what is in its view, and in which order.
func TestSeatbelt(t *testing.T) {
	for name, v := range map[string]View{
		"nothing": {Alone: true, Execute: []string{"/usr/bin/true"}},
		"session": {
			Home: "/Users/me/web/.fairlead/tmp/a-1/home", Temp: "/Users/me/web/.fairlead/tmp/a-1/tmp", Session: "/tmp/fairlead-501/a-1",
			Sockets: []string{"/var/run/docker.sock"},
			Places: []Place{
				{Path: "/Users/me/web/.claude/conversations/c1", Access: Write},
				{Path: "/Users/me/web", Access: Write},
				{Path: "/Users/me/web/.claude", Access: Read, Make: true},
				{Path: "/Users/me/web/.fairlead", Access: Hide},
				{Path: "/Users/me/.rustup", Access: Read},
				{Path: "/Users/me/.cargo/registry", Access: Overlay, Upper: "/Users/me/web/.fairlead/tmp/a-1/cargo"},
				{Path: "/opt/tools", From: "/Users/me/tools", Access: Read},
			},
		},
		"names": {Places: []Place{
			{Path: `/Users/me/a "quoted" \ (name)`, Access: Write},
			{Path: "/Users/me/with ; comment", Access: Hide},
		}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Seatbelt(v)
			if err != nil {
				t.Fatal(err)
			}
			golden.Check(t, "testdata/seatbelt-"+name+".sb", got)
			if strings.Count(got, "(")-strings.Count(strings.Join(quotedParts(got), ""), "(") != strings.Count(got,
				")")-strings.Count(strings.Join(quotedParts(got), ""), ")") {
				t.Error("its brackets do not match")
			}
		})
	}
}

// quotedParts are the texts of a profile without the rest.
func quotedParts(profile string) (out []string) {
	var in bool
	var part strings.Builder
	for i := 0; i < len(profile); i++ {
		switch c := profile[i]; {
		case c == '\\' && in:
			i++
		case c == '"':
			if in {
				out = append(out, part.String())
				part.Reset()
			}
			in = !in
		case in:
			part.WriteByte(c)
		}
	}
	return out
}

// What decides about a path is the last rule that matches. Each denial has a twin that is allowed.
func TestSeatbeltDecides(t *testing.T) {
	profile, err := Seatbelt(View{
		Home: "/Users/me/s/home", Temp: "/tmp/s",
		Places: []Place{
			{Path: "/Users/me/web/a/closed/open", Access: Write},
			{Path: "/Users/me/web/a/closed", Access: Read},
			{Path: "/Users/me/web", Access: Write},
			{Path: "/Users/me/web/secret", Access: Hide},
			{Path: "/Users/me/web2", Access: Read},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		act, path string
		want      bool
	}{
		{"file-read-data", "/Users/me/.ssh/id_ed25519", false},
		{"file-read-data", "/Users/me/web/main.go", true},
		{"file-read-data", "/Users/me", false},
		{"file-read-metadata", "/Users/me", true},
		{"file-write-data", "/Users/me/web/a/closed/settings.json", false},
		{"file-write-data", "/Users/me/web/a/settings.json", true},
		{"file-read-data", "/Users/me/web/a/closed/settings.json", true},
		{"file-write-data", "/Users/me/web/a/closed/open/x", true},
		{"file-read-data", "/Users/me/web/secret/key", false},
		{"file-read-data", "/Users/me/web/secrets/key", true},
		{"file-write-data", "/Users/me/web2/x", false},
		{"file-read-data", "/Users/me/web2/x", true},
		{"file-write-unlink", "/Users/me/web/a", false}, // the folder above a closed one
		{"file-write-unlink", "/Users/me/web/b", true},
		{"file-write-unlink", "/Users/me/web/a/closed", false},
		{"file-write-unlink", "/Users/me/web/a/closed/open", false},
		{"file-write-unlink", "/Users/me/web/a/closed/open/x", true},
		{"file-write-create", "/Users/me/web/secret", false}, // missing, it cannot be made
		{"file-write-create", "/Users/me/web/other", true},
		{"file-write-data", "/private/tmp/s/x", true},
		{"file-write-data", "/private/tmp/x", false},
		{"file-read-metadata", "/private/tmp/other", false},
		{"file-write-data", "/usr/bin/true", false},
		{"file-read-data", "/usr/bin/true", true},
	} {
		if got := decides(profile, tt.act, tt.path); got != tt.want {
			t.Errorf("%s %s: allowed is %v", tt.act, tt.path, got)
		}
	}
}

// decides reads the rules about files, one of which is a line here.
func decides(profile, act, at string) (allowed bool) {
	for line := range strings.Lines(profile) {
		word, rest, _ := strings.Cut(strings.Trim(line, "()\n"), " ")
		match := false
		for kind, start := range map[string]string{"literal": `(literal "`, "subpath": `(subpath "`} {
			parts := strings.Split(rest, start)
			for _, p := range parts[1:] {
				p, _, _ = strings.Cut(p, `"`)
				match = match || p == at || kind == "subpath" && below(at, p)
			}
		}
		if !match {
			continue
		}
		for _, named := range strings.Fields(rest) {
			if named == act || strings.HasSuffix(named, "*") && strings.HasPrefix(act, strings.TrimSuffix(named, "*")) {
				allowed = word == "allow"
			}
		}
	}
	return allowed
}

// A name that a rule cannot carry is refused; one that only looks dangerous is quoted (see the golden file).
func TestSeatbeltHostileNames(t *testing.T) {
	for _, tt := range []struct {
		name string
		ok   bool
	}{
		{"plain", true},
		{`a")(allow default)("`, true},
		{`a\`, true},
		{"a\n(allow default)", false},
		{"a\x00b", false},
		{"a\x7f", false},
		{"a\xff", false},
		{"../up", false},
	} {
		for where, v := range map[string]View{
			"place":   {Places: []Place{{Path: "/w/" + tt.name, Access: Write}}},
			"from":    {Places: []Place{{Path: "/w", From: "/w/" + tt.name, Access: Write}}},
			"home":    {Home: "/w/" + tt.name},
			"session": {Session: "/w/" + tt.name},
			"socket":  {Sockets: []string{"/w/" + tt.name}},
		} {
			profile, err := Seatbelt(v)
			if (err == nil) != tt.ok {
				t.Errorf("%s %q: %v", where, tt.name, err)
			}
			for line := range strings.Lines(profile) {
				if strings.HasPrefix(line, "(allow default") {
					t.Errorf("%s %q has become a rule", where, tt.name)
				}
			}
		}
	}
}

// The rules that others had wrong: certificates of Go's TLS, and what an address is compared with.
func TestSeatbeltNetwork(t *testing.T) {
	with, err := Seatbelt(View{})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(with, `(global-name "com.apple.trustd.agent")`) {
		t.Error("Go's TLS cannot verify certificates")
	}
	alone, err := Seatbelt(View{Alone: true})
	if err != nil {
		t.Fatal(err)
	}
	for profile, want := range map[string]bool{with: true, alone: false} {
		if got := strings.Contains(profile, `(allow network-outbound (remote ip "*:*"))`); got != want {
			t.Errorf("reaching hosts is allowed: %v", got)
		}
		for line := range strings.Lines(profile) {
			if strings.HasPrefix(line, "(allow network-outbound") && !strings.Contains(line, "(remote ") {
				t.Errorf("%s names no remote address", line)
			}
		}
	}
}
