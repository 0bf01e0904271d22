package runstate

import (
	"strings"
	"testing"
)

// The variables with which steps of the seed's tool find the file of a GitHub issue.
func TestIssueFile(t *testing.T) {
	dep := func(paths ...string) []StepDep { return []StepDep{{"fetch", paths}} }
	for _, c := range []struct {
		name string
		env  []string
		deps []StepDep
		want string // ISSUE_MARKDOWN_PATH, _DIR and _FILENAME; empty: none is set
	}{
		{"nothing", nil, nil, ""},
		{"a number", []string{"ISSUE_NUMBER=88"}, nil, "/run/artifacts/gh_issue_88.md /run/artifacts gh_issue_88.md"},
		{
			"the last number",
			[]string{"ISSUE_NUMBER=7", "ISSUE_NUMBER=88"},
			nil,
			"/run/artifacts/gh_issue_88.md /run/artifacts gh_issue_88.md",
		},
		{"an empty number", []string{"ISSUE_NUMBER="}, nil, ""},
		{"a number that is a path", []string{"ISSUE_NUMBER=../../x"}, nil, ""},
		{"a path that is given", []string{"ISSUE_NUMBER=88", "ISSUE_MARKDOWN_PATH=/mine.md"}, nil, "/mine.md / mine.md"},
		{"a path alone", []string{"ISSUE_MARKDOWN_PATH=/a/mine.md"}, nil, "/a/mine.md /a mine.md"},
		{"an artifact", nil, dep("PLAN.md", "docs/gh_issue_7.md"), "/repo/docs/gh_issue_7.md /repo/docs gh_issue_7.md"},
		{"an absolute artifact", nil, dep("/tmp/gh_issue_7.md"), "/tmp/gh_issue_7.md /tmp gh_issue_7.md"},
		{"the first of two", nil, dep("a/gh_issue_7.md", "b/gh_issue_8.md"), "/repo/a/gh_issue_7.md /repo/a gh_issue_7.md"},
		{
			"an artifact rather than the number and what is given",
			[]string{"ISSUE_NUMBER=88", "ISSUE_MARKDOWN_PATH=/mine.md"},
			dep("gh_issue_88.md"), "/repo/gh_issue_88.md /repo gh_issue_88.md",
		},
		{"other artifacts", nil, dep("gh_issue_7.txt", "my_gh_issue_7.md", "issue.md", "gh_issue_7.md/x"), ""},
	} {
		step := aCommand()
		step.Env, step.Deps = c.env, c.deps
		env, _, err := step.Environ()
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, name := range []string{"PATH", "DIR", "FILENAME"} {
			for _, kv := range env {
				if value, ok := strings.CutPrefix(kv, "ISSUE_MARKDOWN_"+name+"="); ok {
					got = append(got, value)
				}
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
