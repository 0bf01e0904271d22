package config

import (
	"cmp"
	"strings"
	"testing"
	"time"

	compare "github.com/google/go-cmp/cmp"

	"github.com/fairlead-dev/fairlead/core/network"
)

// The settings of tasks, their defaults, and what is refused.
func TestTasks(t *testing.T) {
	for _, tt := range []struct {
		yaml  string
		want  Tasks
		fault string
	}{
		{"", Tasks{}, ""},
		{
			"tasks: {base: dev, copy: [.env, conf/local], setup: [npm ci], checks: [go test ./...], land: merge, branch: 'work/{id}', reviewer: critic, timeout: 5m, disk: 500MB}\nagents: {critic: {driver: exec, command: [x]}}",
			Tasks{
				Base: "dev", Copy: []string{".env", "conf/local"}, Setup: []string{"npm ci"}, Checks: []string{"go test ./..."},
				Land: "merge", Branch: "work/{id}", Reviewer: "critic", Timeout: 5 * time.Minute, DiskBytes: 500e6,
			},
			"",
		},
		{
			"tasks: {land: pr, remote: upstream, pr: {poll: 15s, ask: every_round}, most: 1}",
			Tasks{Land: "pr", Remote: "upstream", PR: PullRequests{15 * time.Second, "every_round"}, Most: 1},
			"",
		},
		{"tasks: {disk: 0}", Tasks{DiskBytes: -1}, ""},
		{"tasks: {checks_in: task}", Tasks{ChecksIn: "task"}, ""},
		{"tasks: {checks_in: elsewhere}", Tasks{}, "checks_in"},
		{"tasks: {disk: 20}", Tasks{}, "20 is not a size; write it like 500M"},
		{"tasks: {disk: 20gb}", Tasks{}, "is not a size"},
		{"tasks: {timeout: 48h}", Tasks{}, `is "48h"; the most is 24h`},
		{"tasks: {timeout: 0s}", Tasks{}, `is "0s"; the least is 1s`},
		{"tasks: {fetch: 10m}", Tasks{Fetch: 10 * time.Minute}, ""},
		{"tasks: {fetch: 59s}", Tasks{}, `is "59s"; the least is 1m`},
		{"tasks: {fetch: 10}", Tasks{}, "10"},
		{"tasks: {fetch: 2d}", Tasks{}, "2d"},
		{"tasks: {reviewer: critik}\nagents: {critic: {driver: exec, command: [x]}}", Tasks{}, "there is no agent"},
		{"tasks: {reviewer: critic}\nagents: {critic: {driver: exec, loop: foreign}}", Tasks{}, "runs its own loop"},
		{"tasks: {pr: {poll: 14s}}", Tasks{}, `is "14s"; the least is 15s`},
		{"tasks: {pr: {ask: never}}", Tasks{}, "ask"},
		{"tasks: {from: {bug: ghost}}", Tasks{}, `there is no agent "ghost"`},
		{"tasks: {most: 0}", Tasks{}, "most"},
		{"tasks: {remote: -x}", Tasks{}, "remote"},
		{"tasks: {copy: [../secret]}", Tasks{}, "is not below the folder of this file"},
		{"tasks: {copy: [/etc/passwd]}", Tasks{}, "is not below the folder of this file"},
		{"tasks: {branch: same}", Tasks{}, "has no {id}"},
		{"tasks: {land: somewhere}", Tasks{}, "land"},
		{"tasks: {check: [x]}", Tasks{}, "did you mean checks?"},
	} {
		cfg, err := Parse("fairlead.yaml", t.TempDir(), []byte("version: 1\n"+tt.yaml+"\n"),
			func(string) (string, bool) { return "", false })
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
		tt.want.Land, tt.want.Branch = cmp.Or(tt.want.Land, "squash"), cmp.Or(tt.want.Branch, TaskBranch)
		tt.want.Timeout, tt.want.DiskBytes = cmp.Or(tt.want.Timeout, 30*time.Minute), cmp.Or(tt.want.DiskBytes, 20e9)
		tt.want.PR.Poll, tt.want.PR.Ask, tt.want.Most = cmp.Or(tt.want.PR.Poll, PollDefault), cmp.Or(tt.want.PR.Ask, "once"),
			cmp.Or(tt.want.Most, 3)
		tt.want.Remote, tt.want.ChecksIn = cmp.Or(tt.want.Remote, "origin"), cmp.Or(tt.want.ChecksIn, "checkout")
		tt.want.Network = network.Setting{Packages: true}
		tt.want.DiskBytes = max(0, tt.want.DiskBytes) // -1: no limit
		if diff := compare.Diff(tt.want, cfg.Tasks); diff != "" {
			t.Errorf("%s: -want +got\n%s", tt.yaml, diff)
		}
	}
}
