package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/read/view"
)

// What a step makes of the folder for large values leads no write out of the repository: a link there fails the next item and says so.
func TestValuesFollowNoLink(t *testing.T) {
	t.Parallel()
	y := newRunWorld(t)
	y.settled()
	outside := t.TempDir()
	y.file("items.json", fmt.Sprintf(`["a", %q]`, strings.Repeat("b", 150_000)))
	once := 1
	for _, c := range []struct{ name, does, status string }{
		{"plain", "true", "completed"},
		{"file", "mkdir -p ../values && ln -sf OUT/kept ../values/each__LOOP_ITEM", "completed"}, // the link is replaced
		{"folder", "ln -s OUT ../values", "failed"},
		{"dangling", "ln -s OUT/none ../values", "failed"},
		{"inside", "mkdir -p ../../../../docs && ln -s ../../../docs ../values", "failed"},
	} {
		does := strings.ReplaceAll("cd $ARTIFACTS_DIR && [ $LOOP_N = 1 ] || { "+c.does+"; }", "OUT", outside)
		flow := y.file(c.name+".yaml",
			fmt.Sprintf("name: e\nsteps: [{id: each, command: [sh, -c, %q], loop: {items_from_artifact: items.json, index_var: n}}]\n",
				does))
		y.start(view.RunFlags{Workflow: flow, RunID: c.name, MaxAttempts: &once})
		v := y.until(c.name, "it is over", over)
		if v.Status != c.status || c.status == "failed" && !strings.Contains(v.Steps[0].LastError, "values") {
			t.Errorf("%s: %s, want %s: %s", c.name, v.Status, c.status, v.Steps[0].LastError)
		}
	}
	for _, dir := range []string{outside, filepath.Join(y.dir, "docs")} {
		if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
			t.Errorf("%s has %v", dir, names)
		}
	}
}
