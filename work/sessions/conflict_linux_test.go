package sessions

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const talkID = "ses_4f1c29aa7be3"

// startProcess starts a real process that prints a line when it is ready and stays until the test
// ends.
func startProcess(t *testing.T, env []string, argv ...string) int {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH")}, env...)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("it said %q: %v", line, err)
	}
	return cmd.Process.Pid
}

// program writes a script that has the name of an agent program.
func program(t *testing.T, name, more string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+more+"\necho there\nread x\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Issue 8, item 8: real processes that have a conversation open are found, with what they run
// under. Fairlead's own sessions, readers and programs with similar names are not reported.
func TestProcessConflicts(t *testing.T) {
	t.Parallel()
	space := t.TempDir()
	file := filepath.Join(t.TempDir(), "rollout-"+talkID+".jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256([]byte(space))
	mark := "FAIRLEAD_MARK=" + hex.EncodeToString(sum[:8]) + ".coder-1"
	tests := map[string]struct {
		env   []string
		argv  []string
		sign  string // empty: no conflict
		under string
	}{
		"by an argument":                {argv: []string{program(t, "claude", ""), "--resume", talkID}, sign: "arguments"},
		"by a flag with an equals sign": {argv: []string{program(t, "claude", ""), "--resume=" + talkID}, sign: "arguments"},
		"by its environment": {
			argv: []string{program(t, "claude", "")}, env: []string{"CLAUDE_SESSION=" + talkID},
			sign: "as CLAUDE_SESSION",
		},
		"in tmux": {
			argv: []string{program(t, "claude", ""), "-r", talkID},
			env:  []string{"TMUX=/tmp/tmux-1/default,4711,2"}, sign: "arguments", under: "tmux, session 2 of server 4711",
		},
		"in screen": {
			argv: []string{program(t, "claude", ""), "-r", talkID}, env: []string{"STY=99.work"},
			sign: "arguments", under: "screen, session 99.work",
		},
		"by the file it writes":       {argv: []string{"/bin/sh", "-c", `exec 3>>"$0"; echo there; read x`, file}, sign: file},
		"in a session of Fairlead":    {argv: []string{program(t, "claude", ""), "--resume", talkID}, env: []string{mark}},
		"a reader of the file":        {argv: []string{"/bin/sh", "-c", `exec 3<"$0"; echo there; read x`, file}},
		"a program with another name": {argv: []string{program(t, "search", ""), talkID}},
		"in another conversation":     {argv: []string{program(t, "claude", ""), "--resume", talkID + "f"}},
		"name in a path":              {argv: []string{program(t, "claude", ""), "/tmp/" + talkID + ".txt"}},
		"name in a phrase":            {argv: []string{program(t, "claude", "")}, env: []string{"NOTE=see " + talkID}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pid := startProcess(t, tt.env, tt.argv...)
			found, err := ProcessConflicts(space)(t.Context(), talkID, []string{"claude", "--acp"})
			if err != nil {
				t.Fatal(err)
			}
			if tt.sign == "" {
				if len(found) > 0 {
					t.Errorf("it found %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].PID != pid || !strings.Contains(found[0].Sign, tt.sign) ||
				tt.under != "" && found[0].Under != tt.under {
				t.Errorf("found %v, want process %d by %q under %q", found, pid, tt.sign, tt.under)
			}
		})
	}
	if found, err := ProcessConflicts(space)(t.Context(), "a", []string{"sh"}); err != nil || len(found) != 0 {
		t.Errorf("a name that occurs in unrelated text gives %v, %v", found, err)
	}
}

// Arbitrary process table contents are parsed without a panic.
func FuzzProcessTable(f *testing.F) {
	f.Add([]byte("pos:\t0\nflags:\t0100001\n"))
	f.Add([]byte("flags:\t9"))
	f.Add([]byte("1 (a) b) S 7 1"))
	f.Add([]byte("claude\x00--resume\x00" + talkID + "\x00"))
	f.Fuzz(func(t *testing.T, text []byte) {
		forWriting(text)
		parentIn(text)
		p := process{name: "claude", args: words(text), environ: words(text), writes: func(string) string { return "" }}
		if sign := p.sign(talkID, []string{"claude"}); sign != "" && !strings.Contains(string(text), talkID) {
			t.Errorf("%q is known by %s", text, sign)
		}
	})
}
