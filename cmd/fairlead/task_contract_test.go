package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
)

// contractAgent does what a task's text asks for when a file allows it, one file for each start.
const contractAgent = `n=$(cat starts 2>/dev/null || echo 0); n=$((n + 1)); echo $n >starts
id=$(git branch --show-current | sed 's|fairlead/\(T[0-9]*\).*|\1|')
: >"$TOP/at-$id-$n"
until [ -e "$TOP/go-$id-$n" ] || [ -e "$TOP/fail-$id" ]; do sleep 0.02; done
[ ! -e "$TOP/fail-$id" ] || { echo "it cannot be done" >&2; exit 1; }
export GIT_AUTHOR_NAME=x GIT_AUTHOR_EMAIL=x@example.org GIT_COMMITTER_NAME=x GIT_COMMITTER_EMAIL=x@example.org
echo "$id $n" >a.txt
[ "$id-$n" != T2-2 ] || { git add a.txt; git commit --quiet -m resolved; } >/dev/null 2>&1
[ "$id" != T1 ] || echo more >b.txt
`

// What programs outside rely on, over the whole life of tasks: the JSON of `tasks`, the inbox and the exit codes.
func TestTaskContract(t *testing.T) {
	t.Parallel()
	dir, git := taskRepo(t, "*\n!.gitignore\n!a.txt\n!b.txt\n")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a.txt", "0\n")
	git("add", "a.txt")
	git("commit", "--quiet", "-m", "second")
	write("agent.sh", contractAgent)
	s := newRigIn(t, dir, map[string]string{
		"fairlead.yaml": "version: 1\nagents:\n  coder:\n    driver: exec\n    sandbox: \"off\"\n    command: [sh, '" + dir +
			"/agent.sh']\n    env: {TOP: '" + dir + "'}\n    failures_max: 1\n    instances: 1\n    workspace: coder\n",
		"coder/starts": "0\n",
	})
	var record strings.Builder
	says := func(code int, words ...string) {
		t.Helper()
		out, got := s.fairlead(words...)
		if got != code {
			t.Fatalf("fairlead %v: exit code %d, not %d: %s", words, got, code, out)
		}
		fmt.Fprintf(&record, "$ fairlead %s\nexit %d\n", strings.Join(words, " "), got)
	}
	statuses := func() map[string]string {
		var list struct {
			Tasks []struct{ ID, Status, Why string } `json:"tasks"`
		}
		if err := json.Unmarshal([]byte(s.must("tasks", "--json")), &list); err != nil {
			t.Fatal(err)
		}
		all := map[string]string{}
		for _, one := range list.Tasks {
			all[one.ID], all["why "+one.ID] = one.Status, one.Why
		}
		return all
	}
	moment := func(name string, want map[string]string) {
		t.Helper()
		wait.Value(t, name, func() (map[string]string, error) { return statuses(), nil }, func(all map[string]string) bool {
			for id, status := range want {
				if !strings.HasPrefix(all[id], status) {
					return false
				}
			}
			return true
		})
		fmt.Fprintf(&record, "\n## %s\ntasks %s\ninbox %s\n\n", name, plainJSON(t, dir, s.must("tasks", "--json")),
			plainJSON(t, dir, s.must("inbox", "--json")))
	}

	at := func(round string) {
		t.Helper()
		wait.Until(t, round+" is at work", func() bool { return cli.Exists(filepath.Join(dir, "at-"+round)) })
	}
	const queued = "it waits in the queue behind"
	moment("nothing yet", nil)
	says(2, "task")
	says(3, "task", "anything", "--agent", "nobody")
	says(0, "task", "First thing", "--agent", "coder")
	moment("one works", map[string]string{"T1": "working"})
	says(0, "task", "Second thing", "--agent", "coder")
	says(0, "task", "Third thing", "--agent", "coder", "--after", "T1")
	moment("one waits for the agent, one for the first", map[string]string{"T1": "working", "T2": "queued", "why T2": queued, "T3": "blocked"})
	says(3, "merge", "T1")
	says(3, "merge", "T3")
	says(2, "merge", "T9")
	says(2, "diff", "T9")
	write("go-T1-1", "")
	moment("the first needs a person", map[string]string{"T1": "needs_you", "T2": "working"})
	says(0, "diff", "T1", "--stat")
	says(2, "request", "T1")
	says(2, "comment", "T1", "a.txt:zero", "what?")
	says(0, "comment", "T1", "a.txt:1", "say more")
	says(0, "request", "T1", "and better")
	moment("it is sent back and waits for the agent", map[string]string{"T1": "working", "why T1": queued, "T2": "working"})
	at("T2-1")
	write("go-T2-1", "")
	at("T1-2")
	moment("the second needs a person, too", map[string]string{"T1": "working", "T2": "needs_you"})
	write("go-T1-2", "")
	moment("the second round needs a person", map[string]string{"T1": "needs_you", "T2": "needs_you"})
	write("a.txt", "dirty\n")
	says(1, "merge", "T1")
	moment("a checkout with changes is in the way", map[string]string{"T1": "needs_you"})
	git("checkout", "--quiet", "a.txt")
	says(0, "merge", "T1")
	at("T3-1")
	moment("it has landed, and the third begins", map[string]string{"T1": "done", "T3": "working"})
	says(0, "merge", "T1")
	says(3, "request", "T1", "too late")
	says(4, "merge", "T2")
	moment("the second has a conflict", map[string]string{"T2": "needs_you"})
	says(0, "request", "T2")
	moment("it is sent back with the conflict, and waits for the agent", map[string]string{"T2": "working", "why T2": queued})
	write("fail-T3", "")
	write("go-T2-2", "")
	moment("the third has failed, and the conflict is resolved", map[string]string{"T2": "needs_you", "T3": "failed"})
	says(0, "drop", "T3")
	says(0, "merge", "T2")
	moment("all is over", map[string]string{"T1": "done", "T2": "done", "T3": "dropped"})
	says(0, "drop", "T1")
	moment("what landed stays landed", map[string]string{"T1": "done"})
	golden.Check(t, filepath.Join("testdata", "tasks.contract"), record.String())
}

var (
	contractHash  = regexp.MustCompile(`\b[0-9a-f]{10,64}\b`)
	contractTime  = regexp.MustCompile(`\b20\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?`)
	contractTwist = regexp.MustCompile(`\b\d+(\.\d+)? ?(ms|s|m)\b`)
)

// plainJSON is JSON with sorted names and without what differs from run to run.
func plainJSON(t *testing.T, dir, text string) string {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	out, err := json.MarshalIndent(plainValue("", v), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	plain := strings.ReplaceAll(string(out), dir, "DIR")
	plain = contractHash.ReplaceAllString(plain, "HASH")
	return contractTwist.ReplaceAllString(contractTime.ReplaceAllString(plain, "TIME"), "SPAN")
}

// plainValue replaces numbers that are sequences, ages or sizes of this run.
func plainValue(name string, v any) any {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			v[key] = plainValue(key, v[key])
		}
	case []any:
		for i := range v {
			v[i] = plainValue(name, v[i])
		}
	case float64:
		if strings.HasSuffix(name, "_ms") || name == "seq" || name == "offset" || name == "pid" || name == "disk_bytes" {
			return "N"
		}
	}
	return v
}
