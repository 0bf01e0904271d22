package app

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
)

// SPEC's corrections of 2026-11-28, `--wrapper`: one that is named on the command line runs in place of a step's command, also when
// a run continues, and keeps the wrappers' contract: its exit code is no report.
func TestWrapperOverCommand(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.file("told", "")
	good := y.file("good.sh", "#!/bin/sh\n"+saying+`echo "good $STEP_ID" >> told; say COMPLETED > "$REPORT_PATH"`)
	silent := y.file("silent.sh", "#!/bin/sh\necho \"silent $STEP_ID\" >> told\n")
	flow := y.file("flow.yaml",
		"name: w\nsteps: [{id: one, command: [sh, -c, 'echo command $STEP_ID >> told']}, {id: failing, needs: [one], command: [sh, -c, 'exit 1']}]\n")
	optional := y.file("optional.yaml", "name: w\nsteps: [{id: one, report_optional: true, command: [sh, -c, 'exit 1']}]\n")
	once := 1
	for _, c := range []struct {
		name         string
		flags        view.RunFlags
		continued    view.RunFlags // a run that is over is continued with these
		status, told string
	}{
		{"command", view.RunFlags{Workflow: flow}, view.RunFlags{}, "failed", "command one"},
		{"wrapper", view.RunFlags{Workflow: flow, Wrapper: good}, view.RunFlags{}, "completed", "good one,good failing"},
		{"template", view.RunFlags{Workflow: flow, CommandTemplate: "sh good.sh"}, view.RunFlags{}, "completed", "good one,good failing"},
		{"silent", view.RunFlags{Workflow: flow, Wrapper: silent}, view.RunFlags{}, "failed", "silent one"},
		{"optional", view.RunFlags{Workflow: optional, Wrapper: silent}, view.RunFlags{}, "completed", "silent one"},
		{"later", view.RunFlags{Workflow: flow}, view.RunFlags{Wrapper: good}, "completed", "command one,good failing"},
		{"kept", view.RunFlags{Workflow: flow, Wrapper: silent}, view.RunFlags{Env: []string{"A=1"}}, "failed", "silent one,silent one"},
		{
			"over-template",
			view.RunFlags{Workflow: flow, CommandTemplate: "sh silent.sh"},
			view.RunFlags{Wrapper: good},
			"completed",
			"silent one,good one,good failing",
		},
		{
			"over-wrapper",
			view.RunFlags{Workflow: flow, Wrapper: silent},
			view.RunFlags{CommandTemplate: "sh good.sh"},
			"completed",
			"silent one,good one,good failing",
		},
	} {
		y.file("told", "")
		c.flags.RunID, c.flags.MaxAttempts = c.name, &once
		y.start(c.flags)
		v := y.until(c.name, "it is over", over)
		if c.continued.Wrapper != "" || c.continued.CommandTemplate != "" || c.continued.Env != nil {
			if _, err := y.Runs.ResumeRun(t.Context(), human, c.name, c.continued); err != nil {
				t.Fatal(err)
			}
			v = y.until(c.name, "it is over again", over)
		}
		text, err := os.ReadFile(filepath.Join(y.dir, "told"))
		if err != nil {
			t.Fatal(err)
		}
		if told := strings.ReplaceAll(strings.TrimSpace(string(text)), "\n", ","); v.Status != c.status || told != c.told {
			t.Errorf("%s: %s, %q; want %s, %q; %+v", c.name, v.Status, told, c.status, c.told, v.Steps)
		}
	}
}
