package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
)

// SPEC's corrections of 2026-11-28, large loop values: above 100 KiB a file has the value, and what no process can be started with
// fails the step and says why.
func TestLargeValuesOfSteps(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.settled()
	large := strings.Repeat("a", 200_000)
	y.file("items.json", fmt.Sprintf(`[%q, "small", %q, {"k": %q}]`, large, strings.Repeat("b", 100<<10), large[:150_000]))
	tells := `printf '%s %s %s %s\n' "$LOOP_N" "${#LOOP_ITEM}" "$(wc -c <"${LOOP_ITEM_FILE:-/dev/null}")" "$(wc -c <"${LOOP_ITEM_JSON_FILE:-/dev/null}")" >> told`
	each := y.file("each.yaml",
		fmt.Sprintf("name: e\nsteps: [{id: each, command: [sh, -c, %q], loop: {items_from_artifact: items.json, index_var: n}}]\n", tells))
	var names []string
	for i := range 900 {
		names = append(names, fmt.Sprintf("docs/%0200d.md", i))
	}
	y.file("report.sh", saying+`say COMPLETED ",\"artifacts\":$(cat names.json)" > "$REPORT_PATH"`)
	y.file("names.json", `["`+strings.Join(names, `","`)+`"]`)
	list := y.file("list.yaml", `name: l
steps:
  - {id: many, command: [sh, report.sh]}
  - {id: reads, needs: [many], command: [sh, -c, 'cp "$DEP_MANY_ARTIFACTS_FILE" list; echo "${#DEP_MANY_ARTIFACTS} $DEP_MANY_ARTIFACT_899" > told']}
`)
	argument := y.file("argument.yaml", "name: a\nsteps: [{id: one, command: [echo, "+large+"]}]\n")
	plain := y.file("plain.yaml", "name: p\nsteps: [{id: one, command: [sh, -c, 'echo ${#BIG} > told']}]\n")
	many := func(n, size int) (env []string) {
		for i := range n {
			env = append(env, fmt.Sprintf("BIG%s=%s", strings.Repeat("_", i), large[:size]))
		}
		return env
	}
	once := 1
	for _, c := range []struct {
		name         string
		flags        view.RunFlags
		status, told string // told: what the step recorded, or else its last_error
	}{
		{"items", view.RunFlags{Workflow: each}, "completed", "0 0 200000 200002,1 5 0 0,2 102400 0 102402,3 0 150008 150008"},
		{"artifacts", view.RunFlags{Workflow: list}, "completed", "0 " + filepath.Join(y.dir, names[899])},
		{"argument", view.RunFlags{Workflow: argument}, "failed", "argument list too long"},
		{"variable", view.RunFlags{Workflow: plain, Env: many(1, 100<<10)}, "completed", "102400"},
		{"large-variable", view.RunFlags{Workflow: plain, Env: many(1, 150_000)}, "failed", "step one: the variable BIG has 150000 bytes"},
		{"variables", view.RunFlags{Workflow: plain, Env: many(4, 100<<10)}, "completed", "102400"},
		{"many-variables", view.RunFlags{Workflow: plain, Env: many(30, 90<<10)}, "failed", "step one: its variables have"},
	} {
		_ = os.Remove(filepath.Join(y.dir, "told"))
		c.flags.RunID, c.flags.MaxAttempts = c.name, &once
		y.start(c.flags)
		v := y.until(c.name, "it is over", over)
		told := ""
		if text, err := os.ReadFile(filepath.Join(y.dir, "told")); err == nil {
			told = strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ",")
		} else if s := v.Steps[len(v.Steps)-1]; strings.Contains(s.LastError, c.told) {
			told = c.told
		}
		if v.Status != c.status || told != c.told {
			t.Errorf("%s: %s, %q; want %s, %q\n%.600s", c.name, v.Status, told, c.status, c.told, v.Steps[0].LastError)
		}
	}
	for _, name := range []string{"each__LOOP_ITEM", "each__LOOP_ITEM_JSON", "reads__DEP_MANY_ARTIFACTS"} {
		if !strings.Contains(y.logged(), "too large for the step's environment") || !strings.Contains(y.logged(), name+"\n") {
			t.Errorf("the log does not name %s", name)
		}
	}
	var want []string
	for _, name := range names {
		want = append(want, filepath.Join(y.dir, name))
	}
	if list, err := os.ReadFile(filepath.Join(y.dir, "list")); err != nil || string(list) != strings.Join(want, ",") {
		t.Errorf("the list of artifacts: %v, %.300s", err, list)
	}
}
