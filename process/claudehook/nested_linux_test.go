package claudehook

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// playProcess makes the test binary an agent program ("program", which calls a hook through a shell with the
// content of HOOK_ENV), or the hook itself ("hook").
func playProcess() {
	switch os.Getenv("PLAY") {
	case "marking": // sets the variable for its child, and calls a hook with the line HOOK_LINE
		cmd := exec.Command("sh", "-c", os.Getenv("HOOK_LINE"))
		cmd.Env = append(os.Environ(), "CLAUDECODE=1", "PLAY=hook")
		cmd.Stdout = os.Stdout
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
		}
		os.Exit(0)
	case "program":
		cmd := exec.Command("sh", "-c", os.Getenv("HOOK_ENV")+` PLAY=hook "$0"; true`, os.Args[0])
		cmd.Stdout = os.Stdout
		if err := cmd.Run(); err != nil {
			fmt.Println(err)
		}
		os.Exit(0)
	case "within":
		fmt.Print(Within(os.Getpid()))
		os.Exit(0)
	case "hook":
		fmt.Print(nested())
		os.Exit(0)
	}
}

func TestAProgramInAnAgentsShellIsSeen(t *testing.T) {
	if nested() || os.Getenv("CLAUDECODE") != "" {
		t.Skip("an agent runs this itself")
	}
	for _, c := range []struct{ what, line, hook, want string }{
		{"from a terminal", `PLAY=program "$0"; true`, "", "false"},
		{"the hook alone is marked", `PLAY=program "$0"; true`, "CLAUDECODE=1", "false"},
		{"from an agent's shell", `export CLAUDECODE=1; sh -c 'PLAY=program "$0"; true' "$0"; true`, "", "true"},
		{"which hides that", `export CLAUDECODE=1; sh -c 'env -u CLAUDECODE PLAY=program "$0"; true' "$0"; true`, "", "true"},
	} {
		cmd := exec.CommandContext(t.Context(), "sh", "-c", c.line, os.Args[0])
		cmd.Env = append(os.Environ(), "HOOK_ENV="+c.hook)
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", c.what, got, err)
		}
	}
}

// An agent's shell can call a hook and send what a person would: the end of the session.
func TestAnAgentsShellThatAsksAHookIsSeen(t *testing.T) {
	if nested() || os.Getenv("CLAUDECODE") != "" {
		t.Skip("an agent runs this itself")
	}
	small, large := Program{Path: os.Args[0]}, Program{Path: os.Args[0], Args: []string{"hook"}}
	self := quote(os.Args[0])
	for line, want := range map[string]string{
		small.command(SessionEnd):                 "false",
		large.command(SessionEnd):                 "false",
		small.command(UserPromptSubmit):           "false",
		large.command(UserPromptSubmit):           "false",
		"echo {} | " + self + " SessionEnd; true": "true",
		"echo {} | " + small.command(SessionEnd):  "true",
		"sh -e -c " + quote(small.command(SessionEnd)) + " # fairlead install claude":        "true", // the shell around it
		"exec sh -e -c " + quote(small.command(SessionEnd)):                                  "false",
		"echo 'PLAY=hook " + self + "; true' | sh -e -s " + quote(small.command(SessionEnd)): "true",
		"sh -c " + quote("echo {} | "+self+" SessionEnd; true") + "; true":                   "true",
		"env -u CLAUDECODE sh -c " + quote(self+" SessionEnd; true") + "; true":              "true",
		"[ ! -x " + self + " ] || echo {} | " + self + " SessionEnd" + mark:                  "true",
		self + " UserPromptSubmit || { [ -x " + self + " ] || true; }; true" + mark:          "true",
	} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "PLAY=marking", "HOOK_LINE="+line)
		out, err := cmd.Output()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: %s, %v", line, got, err)
		}
	}
}

func TestWhoIsInAnAgentsShellIsKnownByItsAncestors(t *testing.T) {
	if Within(os.Getpid()) {
		t.Skip("an agent runs this itself")
	}
	for line, want := range map[string]string{
		`PLAY=within "$0"; true`:              "false",
		`CLAUDECODE=1 PLAY=within "$0"; true`: "true",
		`CLAUDECODE=1 sh -c 'env -u CLAUDECODE PLAY=within "$0"; true' "$0"; true`: "true",
	} {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", line, os.Args[0]).Output()
		if got := string(out); err != nil || got != want {
			t.Errorf("%s: %s, %v", line, got, err)
		}
	}
}

func TestWhoseParentAProcessIs(t *testing.T) {
	for stat, want := range map[string]string{
		"12 (sh) S 7 12 12": "sh 7 true", "12 (a (b) c) R 9 1": "a (b) c 9 true", "": " 0 false", "12 (sh": " 0 false",
		"12 (sh) S": " 0 false", "12 (sh) S x": "sh 0 false",
	} {
		name, parent, ok := parentOf([]byte(stat))
		if got := fmt.Sprint(name, " ", parent, " ", ok); got != want {
			t.Errorf("%q: %s", stat, got)
		}
	}
}
