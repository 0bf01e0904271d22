package mcp

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/work/sessions"
)

// No two sessions have one token, and neither has a session that is started twice.
func TestTokensDiffer(t *testing.T) {
	seen := map[string]bool{}
	for _, of := range [][2]string{{"a", "b"}, {"a", "b"}, {"a.b", "c"}, {"a", "b.c"}} {
		token := NewToken(of[0], of[1])
		secret := token[strings.LastIndexByte(token, '.')+1:]
		if seen[token] || seen[secret] || len(secret) < 43 {
			t.Errorf("%q is a token already, or too short", token)
		}
		seen[token], seen[secret] = true, true
	}
}

// A token says who has it, and every other text is refused without harm. A changed token has another hash.
func FuzzToken(f *testing.F) {
	f.Add("coder", "coder-1", "coder.coder-1.x")
	f.Add("a.b", "c", "a.b.c.d")
	f.Add("%2E", "%", "%.%.%")
	f.Add("", "", "..")
	f.Fuzz(func(t *testing.T, agent, session, forged string) {
		token := NewToken(agent, session)
		who, err := callerOf(token)
		if len(token) <= tokenMax &&
			(err != nil || who.Agent != agent || who.Session != session || who.TokenHash != sessions.HashOfToken(token)) {
			t.Fatalf("%q is of %+v, %v", token, who, err)
		}
		if is, err := callerOf(forged); err == nil && forged != token && is.TokenHash == who.TokenHash {
			t.Fatalf("%q has the hash of %q", forged, token)
		}
	})
}
