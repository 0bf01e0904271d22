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
		{"", Tasks{Land: "squash", Branch: TaskBranch}, ""},
		{
			"tasks: {base: dev, copy: [.env, conf/local], setup: [npm ci], checks: [go test ./...], land: merge, branch: 'work/{id}'}",
			Tasks{Base: "dev", Copy: []string{".env", "conf/local"}, Setup: []string{"npm ci"}, Checks: []string{"go test ./..."}, Land: "merge", Branch: "work/{id}"},
			"",
		},
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
