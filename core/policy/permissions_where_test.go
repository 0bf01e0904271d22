package policy_test

import (
	"testing"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/test/policytest"
)

// A workspace may be anywhere, also below a folder that governs another program.
func TestPermissionsBelowAGovernor(t *testing.T) {
	scene := policytest.At(t.TempDir() + "/.codex/worktrees")
	disk, where := dispatchfolder.Disk{}, workspaceOf(scene)
	for path, want := range map[string]string{`notes.md`: "allow", `.codex/config.toml`: ""} {
		call := policy.Call{Tool: "Write", Input: []byte(`{"file_path":"` + path + `"}`), Dir: scene.Repo}
		if verdict, rule := answerOf(patterns(t, "Write(**)"), nil, call, nil, where, disk); verdict != want {
			t.Errorf("%s: %q by %q, not %q", path, verdict, rule, want)
		}
	}
}
