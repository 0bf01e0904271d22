package login

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// token is a JWT of a subject that ends at a time.
func token(sub string, exp int64) string {
	return "e30." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"sub":%q,"exp":%d}`, sub, exp)) + ".c2ln"
}

func compact(t *testing.T, text string) string {
	t.Helper()
	tree, err := parse([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	out, err := format(tree)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Join(strings.Fields(string(out)), "")
}

// mergeRow is a person's file and a session's, and what the person has afterwards.
type mergeRow struct {
	program, file   string
	person, session string
	want            string // empty: the person's stays
	later           bool   // the session's file was written later
	fresher         bool   // the person's has the fresher tokens
	refused         string
	other           bool
}

// mergeRows is the table of what is taken from a session's file: fresher tokens of the same account, and nothing else.
func mergeRows() map[string]mergeRow {
	const claude = `{"claudeAiOauth":{"accessToken":"a%d","refreshToken":"r%d","expiresAt":18000000%d0000%s}%s}`
	c := func(n int, inside, behind string) string { return fmt.Sprintf(claude, n, n, n, inside, behind) }
	codex := func(sub string, n int64, account, key, more string) string {
		return fmt.Sprintf(`{"OPENAI_API_KEY":%s,"tokens":{"id_token":%q,"access_token":%q,"refresh_token":"r%d","account_id":%q},"last_refresh":"2026-11-30T00:00:0%dZ"%s}`,
			key, token(sub, 1), token(sub, 1_800_000_000+n), n, account, n, more)
	}
	const mcp = `{"claudeAiOauth":{"accessToken":"a","refreshToken":"r","expiresAt":5},"mcpOAuth":{"x.y|1":{"serverUrl":"%s","accessToken":"%s","expiresAt":%d}}}`
	return map[string]mergeRow{
		"the same":          {person: c(1, "", ""), session: c(1, "", "")},
		"a refresh":         {person: c(1, "", ""), session: c(2, "", ""), want: c(2, "", "")},
		"the person's":      {person: c(3, "", ""), session: c(2, "", ""), fresher: true, later: true},
		"same time, later":  {person: strings.Replace(c(1, "", ""), "r1", "r0", 1), session: c(1, "", ""), later: true, want: c(1, "", "")},
		"same time, before": {person: strings.Replace(c(1, "", ""), "r1", "r0", 1), session: c(1, "", ""), fresher: true},
		"the plan is not told": {
			person: c(1, `,"scopes":["a"]`, ""), session: c(2, `,"scopes":["a","b"],"subscriptionType":"max"`, ""),
			want: c(2, `,"scopes":["a"]`, ""),
		},
		"a key beside": {
			person: c(1, "", ""), session: c(2, "", `,"apiKeyHelper":"rm -rf /"`), want: c(2, "", ""), other: true,
		},
		"a key in it":      {person: c(1, "", ""), session: c(2, `,"command":"x"`, ""), want: c(2, "", ""), other: true},
		"the person's key": {person: c(1, "", `,"x":{"n":12345678901234567890}`), session: c(2, "", ""), want: c(2, "", `,"x":{"n":12345678901234567890}`), other: true},
		"no such group":    {person: `{"claudeAiOauth":null}`, session: c(2, "", ""), other: true},
		"signed out":       {person: c(1, "", ""), session: `{}`, other: true},
		"no token":         {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), `"a2"`, `{"x":1}`, 1), refused: "a token in it is none"},
		"a list":           {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), `"a2"`, `["a2"]`, 1), refused: "a token in it is none"},
		"null":             {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), `"a2"`, `null`, 1), refused: "a token in it is none"},
		"empty":            {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "a2", "", 1), refused: "a token in it is none"},
		"a space":          {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "a2", "a 2", 1), refused: "a token in it is none"},
		"a control":        {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "a2", `\u001b[2J`, 1), refused: "a token in it is none"},
		"a quote":          {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "a2", `\"`, 1), refused: "a token in it is none"},
		"too long":         {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "a2", strings.Repeat("a", tokenMax+1), 1), refused: "a token in it is none"},
		"a number":         {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), `"a2"`, "2", 1), refused: "a token in it is none"},
		"a text":           {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "1800000020000", `"1800000020000"`, 1), refused: "a token in it is none"},
		"no refresh":       {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), `,"refreshToken":"r2"`, "", 1), refused: "a token in it is none"},
		"for ever":         {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "1800000020000", "1e300", 1), refused: "more than 400 days"},
		"long": {
			person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "1800000020000", "1."+strings.Repeat("0", numberMax), 1), refused: "a token in it is none",
		},
		"negative": {person: c(1, "", ""), session: strings.Replace(c(2, "", ""), "1800000020000", "-5", 1), fresher: true},
		"a server": {
			person: fmt.Sprintf(mcp, "https://a", "m1", 1), session: fmt.Sprintf(mcp, "https://a", "m2", 2),
			want: fmt.Sprintf(mcp, "https://a", "m2", 2),
		},
		"another server": {
			person: fmt.Sprintf(mcp, "https://a", "m1", 1), session: fmt.Sprintf(mcp, "https://b", "m2", 2),
			refused: "of another account, or for another server", other: true,
		},
		"codex": {
			program: "codex", file: "auth.json", person: codex("me", 1, "acc", "null", ""), session: codex("me", 2, "acc", "null", ""),
			want: codex("me", 2, "acc", "null", ""),
		},
		"codex, another account": {
			program: "codex", file: "auth.json", person: codex("me", 1, "acc", "null", ""), session: codex("me", 2, "other", "null", ""),
			refused: "of another account", other: true,
		},
		"codex, another subject": {
			program: "codex", file: "auth.json", person: codex("me", 1, "acc", "null", ""), session: codex("you", 2, "acc", "null", ""),
			refused: "it is of another account",
		},
		"codex, a key": {
			program: "codex", file: "auth.json", person: codex("me", 1, "acc", "null", ""), session: codex("me", 2, "acc", `"sk-1"`, ""),
			refused: "of another account", other: true,
		},
		"opencode, one of two": {
			program: "opencode", file: "auth.json",
			person:  `{"a":{"type":"oauth","access":"a1","refresh":"r1","expires":1},"b":{"type":"oauth","access":"b2","refresh":"s2","expires":2},"c":{"type":"api","key":"k"}}`,
			session: `{"a":{"type":"oauth","access":"a2","refresh":"r2","expires":2},"b":{"type":"oauth","access":"b1","refresh":"s1","expires":1},"c":{"type":"api","key":"k"}}`,
			want:    `{"a":{"type":"oauth","access":"a2","refresh":"r2","expires":2},"b":{"type":"oauth","access":"b2","refresh":"s2","expires":2},"c":{"type":"api","key":"k"}}`,
			fresher: true,
		},
		"opencode, another key": {
			program: "opencode", file: "auth.json", person: `{"c":{"type":"api","key":"k"}}`, session: `{"c":{"type":"api","key":"l"}}`, other: true,
		},
		"gemini, without an id token": {
			program: "gemini", file: "oauth_creds.json",
			person:  `{"access_token":"a1","refresh_token":"r1","id_token":"i1","expiry_date":1,"token_type":"Bearer"}`,
			session: `{"access_token":"a2","refresh_token":"r1","expiry_date":2,"token_type":"Bearer"}`,
			want:    `{"access_token":"a2","refresh_token":"r1","id_token":"i1","expiry_date":2,"token_type":"Bearer"}`,
		},
		"qwen, another address": {
			program: "qwen", file: "oauth_creds.json",
			person:  `{"access_token":"a1","refresh_token":"r1","expiry_date":1,"resource_url":"portal.qwen.ai"}`,
			session: `{"access_token":"a2","refresh_token":"r2","expiry_date":2,"resource_url":"evil.invalid"}`,
			refused: "for another server", other: true,
		},
		"cursor": {
			program: "cursor-agent", file: "auth.json",
			person:  fmt.Sprintf(`{"accessToken":%q,"refreshToken":"r1"}`, token("me", 1)),
			session: fmt.Sprintf(`{"accessToken":%q,"refreshToken":"r2"}`, token("me", 2)),
			want:    fmt.Sprintf(`{"accessToken":%q,"refreshToken":"r2"}`, token("me", 2)),
		},
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	for name, row := range mergeRows() {
		if row.program == "" {
			row.program, row.file = "claude", ".credentials.json"
		}
		person, err := parse([]byte(row.person))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		session, err := parse([]byte(row.session))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		written := now.Add(-time.Minute)
		if row.later {
			written = now
		}
		m := merge(side{person, now.Add(-time.Second)}, side{session, written}, formats[row.program][row.file], now)
		want := row.want
		if want == "" {
			want = row.person
		}
		out, err := format(m.tree)
		if got := compact(t, string(out)); err != nil || got != compact(t, want) {
			t.Errorf("%s: the person's file becomes\n%s\nwant\n%s", name, got, compact(t, want))
		}
		if m.fromSession != (row.want != "") || m.fromPerson != row.fresher {
			t.Errorf("%s: from the session %t, from the person %t", name, m.fromSession, m.fromPerson)
		}
		if said := strings.Join(m.refused, "; "); row.refused == "" && said != "" || !strings.Contains(said, row.refused) {
			t.Errorf("%s: refused is %q", name, said)
		}
		if row.refused == "" && m.other != row.other {
			t.Errorf("%s: other things differ: %t", name, m.other)
		}
	}
}

// TestTwice checks that a file in which a name occurs twice, or that is none, is not read.
func TestTwice(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "null", "[]", "{", `{"a":1,"a":2}`, `{"a":{"b":1,"b":1}}`, `{} {}`, "{\"a\":\"\xff\"}", strings.Repeat(" ", bytesMax) + "{}"} {
		if got, err := parse([]byte(text)); err == nil {
			t.Errorf("%.20q is %v", text, got)
		}
	}
}

// FuzzMerge checks the promise: whatever the session writes, only what the table names as tokens changes.
func FuzzMerge(f *testing.F) {
	f.Add("claude", ".credentials.json", `{"claudeAiOauth":{"accessToken":"a2","refreshToken":"r2","expiresAt":2,"x":1},"y":{}}`)
	f.Add("codex", "auth.json", `{"tokens":{"access_token":"a","refresh_token":"r","account_id":"acc"},"last_refresh":"now"}`)
	f.Add("opencode", "auth.json", `{"a":{"type":"oauth","access":"a","refresh":"r","expires":9}}`)
	f.Add("qwen", "oauth_creds.json", `{"access_token":7,"refresh_token":{},"expiry_date":"x","resource_url":1}`)
	const person = `{"claudeAiOauth":{"accessToken":"A","refreshToken":"R","expiresAt":1},"mcpOAuth":{"s":{"serverUrl":"u","accessToken":"A","expiresAt":1}},` +
		`"OPENAI_API_KEY":null,"tokens":{"access_token":"A","refresh_token":"R","id_token":"I","account_id":"acc"},"last_refresh":"L",` +
		`"a":{"type":"oauth","access":"A","refresh":"R","expires":1,"tokens":{"accessToken":"A"}},` +
		`"access_token":"A","refresh_token":"R","expiry_date":1,"resource_url":"u","accessToken":"A","refreshToken":"R","other":["x"]}`
	now := time.Unix(1_800_000_000, 0)
	f.Fuzz(func(t *testing.T, program, file, text string) {
		groups := formats[program][file]
		session, err := parse([]byte(text))
		if err != nil || groups == nil {
			return
		}
		before, err := parse([]byte(person))
		if err != nil {
			t.Fatal(err)
		}
		m := merge(side{before, now}, side{session, now.Add(1)}, groups, now)
		again, err := parse([]byte(person))
		if err != nil || !isSame(before, again) {
			t.Fatal("the person's tree was changed")
		}
		for _, g := range groups {
			for _, at := range g.places(again) {
				changed := object(m.tree, at)
				for _, name := range g.written() {
					if was, is := get(object(again, at), name), get(changed, name); !isSame(was, is) {
						if !isToken(is) || was != nil && isText(was) != isText(is) {
							t.Errorf("%v %s became %v", at, name, is)
						}
						set(changed, name, was)
					}
				}
			}
		}
		if !isSame(m.tree, again) {
			t.Errorf("more than tokens changed: %v", m.tree)
		}
	})
}

// TestRows checks that each row of the table can decide which of two tokens is fresher.
func TestRows(t *testing.T) {
	t.Parallel()
	for program, files := range formats {
		for name, groups := range files {
			for _, g := range groups {
				if len(g.tokens) == 0 || g.expiry != "" && g.unit == 0 || slices.Contains(g.tokens, g.expiry) {
					t.Errorf("%s of %s: %+v", name, program, g)
				}
			}
		}
	}
}
