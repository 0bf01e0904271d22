package policy_test

import (
	"bytes"
	"context"
	"encoding/json"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
)

// told creates a shell that runs nothing: no program is found, and the name of each command is reported
// instead. Builtins run in an empty folder.
const told = `command_not_found_handle() { echo "$1: not found" >&2; }
PATH=/nowhere
eval "$COMMAND"
`

// The judge and the shell use different parsers. Where they disagree, a command could be allowed that is not
// the one that runs. Therefore commands are cut and joined at random, and those that MAIN may run are given
// to real shells that run no program and report names: each must be on the list, and no file may be created
// (D8). This found that the parser continues after a backslash at a comment's end.
func TestShellReadsWhatWeRead(t *testing.T) {
	for _, name := range []string{"bash", "dash"} { // an agent program may run commands with sh
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			shell, err := exec.LookPath(name)
			if err != nil {
				t.Skipf("%s is not installed here", name)
			}
			rounds := 150
			if testsize.Long() {
				rounds = 4000
			}
			compare(t, shell, rounds)
		})
	}
}

func compare(t *testing.T, shell string, rounds int) {
	scene := policytest.Build(t)
	disk := dispatchfolder.Disk{}
	where := policytest.Case{}.Where(scene)
	var commands []string
	for _, c := range policytest.Calls(t) {
		if command := c.Command(scene); command != "" && c.Main {
			commands = append(commands, command)
		}
	}
	rnd := rand.New(rand.NewPCG(7, 0))
	for given := 0; given < rounds; {
		command := torn(rnd, commands)
		raw, err := json.Marshal(map[string]string{"command": command})
		if err != nil || strings.Contains(command, "/bin/") {
			continue
		}
		if v := policy.Judge(policy.MainRules(), true, policy.Call{Tool: "Bash", Input: raw, Dir: scene.Repo}, where, disk); !v.Allow {
			continue
		}
		given++
		var runs string
		for range 3 { // two programs of a pipe may mix their output, but not always in the same way
			if runs = unlisted(names(t, shell, command)); runs == "" {
				break
			}
		}
		if runs != "" {
			t.Errorf("MAIN may give %q, and the shell runs %q", command, runs)
		}
	}
}

// unlisted returns the first name that is not on the list.
func unlisted(names []string) string {
	for _, name := range names {
		switch {
		case name == "[[": // dash does not know it, and evaluates nothing in it
		case strings.Contains(name, "not found"): // two messages in one
		case !slices.Contains(mayStand, name):
			return name
		}
	}
	return ""
}

// names runs a command in the shell and returns what it would have run.
func names(t *testing.T, shell, command string) []string {
	t.Helper()
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, shell, "-c", told)
	cmd.Dir, cmd.Env = dir, []string{"COMMAND=" + command, "HOME=" + dir, "LC_ALL=C.UTF-8"}
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	_ = cmd.Run() // a cut command fails; only its effects matter
	if made, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || len(made) > 0 {
		t.Errorf("MAIN may give %q, and the shell makes files by it: %v %v", command, made, err)
	}
	var all []string
	for line := range strings.Lines(said.String()) {
		// type reports that it is not a command
		if before, ok := strings.CutSuffix(strings.TrimSpace(line), ": not found"); ok && !strings.Contains(before, " type: ") {
			all = append(all, before[strings.LastIndex(before, ": ")+1:])
		}
	}
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

// torn combines two commands and removes and inserts parts.
func torn(rnd *rand.Rand, commands []string) string {
	pieces := []string{
		";", "&&", "||", "|", "|&", "&", "`", "$(", ")", `"`, "'", `\`, "\n", " #", "{ ", "; }", "( ", " ", "<", ">", ">&2", "2>&1",
		"<<E\n", "\nE\n", "<<-'E'\n",
		"$x", "${x", "}", "=", "*", "?", "!", "[[ ", " ]]", "case x in x) ", ";; esac", "((", "))", "$((", "\\\n", "if ", "; then ", "; fi",
		"for f in a; do ", "; done",
		"touch x", "$'", `$"`, "<(", ">(", "{a,b}", "~", "@(", "0", "9>&1", "time ", "! ", "x=", "<<<", "\t", "ü", "function f ", "() ",
		"select ", "coproc ", "&>",
	}
	text := commands[rnd.IntN(len(commands))]
	for range rnd.IntN(3) {
		at := rnd.IntN(len(text) + 1)
		switch rnd.IntN(4) {
		case 0:
			other := commands[rnd.IntN(len(commands))]
			text = text[:at] + pieces[rnd.IntN(len(pieces))] + other
		case 1:
			text = text[:at] + text[min(len(text), at+1+rnd.IntN(3)):]
		default:
			text = text[:at] + pieces[rnd.IntN(len(pieces))] + text[at:]
		}
	}
	if text == "" {
		return "ls"
	}
	return text
}
