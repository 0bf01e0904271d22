package runs

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/cli"
	"github.com/fairlead-dev/fairlead/view"
)

// The daemon of `fairlead run` ends with its last run, at times before the person's command has looked at the result.
func TestShowAfterItsDaemon(t *testing.T) {
	dir := t.TempDir()
	var said bytes.Buffer
	a := &cli.App{Dir: dir, Out: &said, Err: &said}
	helm, err := takeHelm(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	client, err := a.Dial()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	flow := filepath.Join(dir, "one.yaml")
	if err := os.WriteFile(flow, []byte("name: one\nsteps:\n  - {id: only, gates: [closed], command: [\"true\"]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := view.RunFlags{RunID: "one", Workflow: flow}
	if _, err := helm.Runs.Start(t.Context(), flags); err != nil {
		t.Fatal(err)
	}
	if _, err := helm.Runs.Cancel(t.Context(), "one", "", ""); err != nil {
		t.Fatal(err)
	}
	if err := helm.leave(t.Context(), a, true); err != nil {
		t.Fatal(err)
	}
	run, err := showAfter(t.Context(), a, client, "one")
	if err != nil || run.Status != "cancelled" {
		t.Errorf("the run is %q, %v; said %s", run.Status, err, &said)
	}
	if _, err := client.Runs.Show(t.Context(), "one"); err == nil {
		t.Error("the daemon still answers, so this tests nothing")
	}
}
