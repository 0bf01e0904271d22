package places_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/files/login"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/sandbox/places"
)

const sessionsAtOnce = 8

// signedIn is one of the sessions at once, each of an agent of its own.
func (m *machine) signedIn(n int, command string) places.Session {
	s := m.session("repo/w")
	s.Agent = fmt.Sprintf("agent%d", n)
	s.Own = m.at(fmt.Sprintf("repo/.fairlead/tmp/agent%d-1", n))
	s.Driver, s.Command = "acp", strings.Fields(command)
	return s
}

// TestRefreshedByEight refreshes one login in eight sessions that run at once, each when the one before it has: all see the last token
// in the end, and the person's file has it. One program replaces its file by rename, one writes in place where that is refused, and one
// writes in place.
func TestRefreshedByEight(t *testing.T) {
	for program, c := range map[string]struct{ command, file, login, write string }{
		"qwen": {
			"qwen --acp", "home/.qwen/oauth_creds.json",
			`{"access_token":"aN","expiry_date":N,"refresh_token":"rN"}`,
			`echo "$text" > $file.tmp && mv $file.tmp $file`,
		},
		"claude": {
			"claude-code-acp", "home/.claude/.credentials.json",
			`{"claudeAiOauth":{"accessToken":"aN","expiresAt":N,"refreshToken":"rN"}}`,
			`echo "$text" > $file.tmp; mv $file.tmp $file 2>/dev/null && echo renamed || echo "$text" > $file`,
		},
		"codex": {
			"codex-acp", "home/.codex/auth.json",
			`{"tokens":{"access_token":"aN","refresh_token":"rN","account_id":"me"},"last_refresh":"N"}`,
			`echo "$text" > $file`,
		},
		"opencode": {
			"opencode acp", "home/.local/share/opencode/auth.json",
			`{"provider":{"type":"oauth","access":"aN","expires":N,"refresh":"rN"}}`,
			`echo "$text" > $file`,
		},
	} {
		t.Run(program, func(t *testing.T) {
			text := func(n int) string { return strings.ReplaceAll(c.login, "N", fmt.Sprint(n)) }
			m := viewedMachine(t, "repo/w/ "+c.file)
			refresh := func(n int) {
				if err := os.WriteFile(m.at(c.file), []byte(text(n)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			refresh(0)
			outs := make([]bytes.Buffer, sessionsAtOnce+1)
			var waits []func() error
			for n := 1; n <= sessionsAtOnce; n++ {
				script := fmt.Sprintf(`file=%q; text='%s'; until grep -q '"r%d"' $file; do sleep 0.02; done; %s
					until grep -q '"r%d"' $file; do sleep 0.02; done; grep -o '"r[0-9]*"' $file`, m.at(c.file), text(n), n-1, c.write, sessionsAtOnce)
				cmd, remove := m.viewed(m.signedIn(n, c.command), script)
				defer remove()
				cmd.Stdout, cmd.Stderr = &outs[n], &outs[n]
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				waits = append(waits, cmd.Wait)
			}
			for n, wait := range waits {
				last := fmt.Sprintf("\"r%d\"\n", sessionsAtOnce)
				if err := wait(); err != nil || outs[n+1].String() != last {
					t.Errorf("session %d has %q, %v, want %q", n+1, outs[n+1].String(), err, last)
				}
			}
			if err := places.End(m.signedIn(1, c.command).Own); err != nil {
				t.Error(err)
			}
			got, err := os.ReadFile(m.at(c.file))
			if strings.Count(string(got), fmt.Sprintf("r%d", sessionsAtOnce)) != 1 || err != nil {
				t.Errorf("the person's file is %s, %v", got, err)
			}
			// the person refreshes it: a session that runs sees it
			cmd, remove := m.viewed(m.signedIn(1, c.command),
				fmt.Sprintf(`echo began; until grep -q '"r99"' %q; do sleep 0.02; done; echo seen`, m.at(c.file)))
			defer remove()
			out, err := cmd.StdoutPipe()
			if err == nil {
				err = cmd.Start()
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := out.Read(make([]byte, 6)); err != nil {
				t.Fatal(err)
			}
			refresh(99)
			if err := places.End(m.signedIn(2, c.command).Own); err != nil {
				t.Error(err)
			}
			seen := make([]byte, 5)
			if _, err := out.Read(seen); err != nil || string(seen) != "seen\n" {
				t.Errorf("the session says %q, %v", seen, err)
			}
			if err := cmd.Wait(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestSharedFolder checks what sessions of several agents share of a program that renames its login, and what is read-only or the
// agent's own.
func TestSharedFolder(t *testing.T) {
	m := viewedMachine(t, `repo/w/ home/.qwen/settings.json={"mine":1} home/.qwen/oauth_creds.json={} home/.qwen/skills/s/SKILL.md=skill`)
	for _, c := range []struct {
		agent         int
		command, want string
	}{
		{1, "cat ~/.qwen/settings.json", `{"mine":1}`},
		{1, "echo {} > ~/.qwen/settings.json", "Read-only"},
		{1, "mv ~/.qwen/settings.json ~/.qwen/x", "busy"},
		{1, "rm -f ~/.qwen/settings.json", "busy"},
		{1, "echo evil > ~/.qwen/QWEN.md", "Read-only"},
		{1, "echo evil > ~/.qwen/.env", "Read-only"},
		{1, "cat ~/.qwen/trustedFolders.json", "{}"},
		{1, "mkdir ~/.qwen/commands/x", "Read-only"},
		{1, "cat ~/.qwen/skills/s/SKILL.md", "skill"},
		{1, "mkdir -p ~/.qwen/projects/p && echo talk > ~/.qwen/projects/p/chat && cat ~/.qwen/projects/p/chat", "talk"},
		{1, "cat ~/.qwen/projects/p/chat", "talk"},
		{2, "cat ~/.qwen/projects/p/chat", "No such file"},
		{1, "echo lock > ~/.qwen/oauth_creds.lock", ""},
		{2, "cat ~/.qwen/oauth_creds.lock", "lock"},
	} {
		s := m.signedIn(c.agent, "qwen --acp")
		if got := m.inView(s, c.command); !strings.Contains(got, c.want) || c.want == "" && got != "" {
			t.Errorf("agent %d, %s: %q, want %q", c.agent, c.command, got, c.want)
		}
		if err := places.End(s.Own); err != nil {
			t.Error(err)
		}
	}
	if text, err := os.ReadFile(m.at("home/.qwen/settings.json")); err != nil || string(text) != `{"mine":1}` {
		t.Errorf("the person's settings are %s, %v", text, err)
	}
}

// TestMountStays checks that the next session of an agent does not take the login from one that runs.
func TestMountStays(t *testing.T) {
	m := viewedMachine(t, "repo/w/ home/.claude/.credentials.json="+oauth(1))
	first := m.signedIn(1, "claude-code-acp")
	cmd, remove := m.viewed(first, "echo began; read go; cat ~/.claude/.credentials.json")
	defer remove()
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	second := first
	second.Own = m.at("repo/.fairlead/tmp/agent1-2")
	if got := m.inView(second, fmt.Sprintf("echo '%s' > ~/.claude/.credentials.json; cat ~/.claude/.credentials.json", oauth(2))); !strings.Contains(got, "r2") {
		t.Errorf("the second has %s", got)
	}
	if _, err := fmt.Fprintln(in, "go"); err != nil {
		t.Fatal(err)
	}
	got := new(bytes.Buffer)
	if _, err := got.ReadFrom(out); err != nil || !strings.Contains(got.String(), "r2") {
		t.Errorf("the first has %s, %v", got, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestSignedOut checks that a person who has signed out has signed out of the next session, and that a login which is made inside stays
// the agent's.
func TestSignedOut(t *testing.T) {
	m := viewedMachine(t, "repo/w/ home/.codex/auth.json={}")
	s := m.signedIn(1, "codex-acp")
	if got := m.inView(s, "cat ~/.codex/auth.json"); !strings.Contains(got, "{}") {
		t.Fatal(got)
	}
	if err := os.Remove(m.at("home/.codex/auth.json")); err != nil {
		t.Fatal(err)
	}
	if got := m.inView(s, "ls -A ~/.codex; echo inside > ~/.codex/auth.json"); strings.Contains(got, "auth.json") {
		t.Errorf("after it, there is %q", got)
	}
	if left, err := filepath.Glob(m.at("repo/.fairlead/logins/*/auth.json")); err != nil || len(left) > 0 {
		t.Errorf("left are %q, %v", left, err)
	}
	if got := m.inView(s, "cat ~/.codex/auth.json"); got != "inside\n" {
		t.Errorf("the login of the agent is %q", got)
	}
	if _, err := os.Lstat(m.at("home/.codex/auth.json")); err == nil {
		t.Error("it is the person's, too")
	}
}

// TestLoginWithoutMounts checks that where nothing can be mounted, each agent has a file that follows the person's.
func TestLoginWithoutMounts(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "repo/w/ home/.claude/.credentials.json="+oauth(1))
	m.by = sandbox.Ability{By: sandbox.ByLandlock}
	at := func(n int) string {
		return m.at(fmt.Sprintf("repo/.fairlead/programs/agent%d/claude/claude/.credentials.json", n))
	}
	for n := 1; n <= 2; n++ {
		p, err := places.Of(m.signedIn(n, "claude-code-acp"))
		if err == nil {
			err = p.Make()
		}
		if text, fault := os.ReadFile(at(n)); err != nil || fault != nil || !strings.Contains(string(text), "r1") {
			t.Fatalf("agent %d has %s, %v, %v", n, text, err, fault)
		}
	}
	if err := os.WriteFile(at(1), []byte(oauth(2)), 0o600); err != nil {
		t.Fatal(err)
	}
	stores, err := login.Stores(m.at("repo/.fairlead"))
	if err != nil || len(stores) != 2 {
		t.Fatalf("stores are %v, %v", stores, err)
	}
	if err := places.End(m.signedIn(1, "").Own); err != nil {
		t.Fatal(err)
	}
	if err := places.End(m.signedIn(2, "").Own); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{at(1), at(2), m.at("home/.claude/.credentials.json")} {
		if text, err := os.ReadFile(file); err != nil || !strings.Contains(string(text), "r2") {
			t.Errorf("%s is %s, %v", file, text, err)
		}
	}
}
