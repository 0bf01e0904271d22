package config

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The settings of tasks, their defaults, and what is refused.
func TestTasks(t *testing.T) {
	for _, tt := range []struct {
		yaml  string
		want  Tasks
		fault string
	}{
		{"", Tasks{Land: "squash", Branch: TaskBranch, PR: PullRequests{PollDefault, AskOnce}, Most: MostDefault}, ""},
		{
			"tasks: {base: dev, copy: [.env, conf/local], setup: [npm ci], checks: [go test ./...], land: merge, branch: 'work/{id}'}",
			Tasks{Base: "dev", Copy: []string{".env", "conf/local"}, Setup: []string{"npm ci"}, Checks: []string{"go test ./..."}, Land: "merge", Branch: "work/{id}", PR: PullRequests{PollDefault, AskOnce}, Most: MostDefault},
			"",
		},
		{
			"tasks: {land: pr, remote: upstream, pr: {poll: 15s, ask: every_round}, most: 1}",
			Tasks{Land: "pr", Branch: TaskBranch, Remote: "upstream", PR: PullRequests{PollLeast, "every_round"}, Most: 1},
			"",
		},
		{"tasks: {pr: {poll: 14s}}", Tasks{}, `"14s" is too often for the forges; take 15s or more`},
		{"tasks: {pr: {ask: never}}", Tasks{}, "ask"},
		{"tasks: {from: {bug: nobody}}", Tasks{}, `there is no agent "nobody"`},
		{"tasks: {most: 0}", Tasks{}, "most"},
		{"tasks: {remote: -x}", Tasks{}, "remote"},
		{"tasks: {copy: [../secret]}", Tasks{}, "is not below the folder of this file"},
		{"tasks: {copy: [/etc/passwd]}", Tasks{}, "is not below the folder of this file"},
		{"tasks: {branch: same}", Tasks{}, "has no {id}"},
		{"tasks: {land: rebase}", Tasks{}, "land"},
		{"tasks: {workflow: none.yaml}", Tasks{}, "there is no file"},
		{"tasks: {check: [x]}", Tasks{}, "did you mean checks?"},
	} {
		cfg, err := Parse("fairlead.yaml", t.TempDir(), []byte("version: 1\n"+tt.yaml+"\n"), func(string) (string, bool) { return "", false })
		if tt.fault != "" {
			if err == nil || !strings.Contains(err.Error(), tt.fault) {
				t.Errorf("%s: %v, want %q", tt.yaml, err, tt.fault)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", tt.yaml, err)
			continue
		}
		if diff := cmp.Diff(tt.want, cfg.Tasks); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.yaml, diff)
		}
	}
}
