package dispatchfolder

import (
	"os"
	"path/filepath"
	"testing"
)

// The user's agents are where Claude Code reads them: in CLAUDE_CONFIG_DIR, if it is set, and else in the home folder.
func TestUsersAgentsAreInTheConfigDir(t *testing.T) {
	repo, home, conf := t.TempDir(), t.TempDir(), t.TempDir()
	for dir, name := range map[string]string{
		filepath.Join(repo, ".claude", "agents"): "ofproject", filepath.Join(home, ".claude", "agents"): "ofhome",
		filepath.Join(conf, "agents"): "ofconf",
	} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name+".md"), []byte("---\nname: "+name+"\ndescription: Works\n---\n"),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	for set, want := range map[string]string{"": "ofhome", conf: "ofconf"} {
		t.Setenv("CLAUDE_CONFIG_DIR", set)
		all, faults, err := Agents(repo, home)
		if err != nil || len(faults) > 0 || len(all) != 2 || all[0].Name != want || all[1].Name != "ofproject" {
			t.Errorf("CLAUDE_CONFIG_DIR=%q: %+v, %+v, %v", set, all, faults, err)
		}
	}
}
