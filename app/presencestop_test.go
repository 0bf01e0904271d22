package app

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/work/outside"

	"github.com/fairlead-dev/fairlead/internal/file"
)

// slowDocuments is a folder whose writes wait until the test releases them.
type slowDocuments struct {
	outside.Documents
	let chan struct{}
}

func (d slowDocuments) Write(ctx context.Context, name string, content []byte, newest uint64, ours func(file.Sum) bool) error {
	<-d.let
	return d.Documents.Write(ctx, name, content, newest, ours)
}

// TestStopWaitsForTheDocuments checks that a stop completes only when the documents' files are
// current, because people copy them then.
func TestStopWaitsForTheDocuments(t *testing.T) {
	t.Parallel()
	let := make(chan struct{})
	w := &world{t: t, dir: t.TempDir(), documents: func(d outside.Documents) outside.Documents { return slowDocuments{d, let} }}
	w.write("fairlead.yaml", crewYAML)
	w.write("julian.script", "listen\n")
	w.start()
	if _, err := w.engine.Agents.Hold(context.Background(), human, true, ""); err != nil {
		t.Fatal(err)
	}
	w.leads("Lyra")
	if err := w.engine.Agents.Stop(context.Background(), human, true); err != nil {
		t.Fatal(err)
	}
	for range 3 { // the loop runs some rounds in which a document is not written
		if _, err := w.engine.Status.Agent(context.Background(), "julian"); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-w.engine.Loop.Stopped():
		t.Error("the stop has completed, but no file has Lyra")
	default:
	}
	close(let)
	<-w.engine.Loop.Stopped()
	text, err := os.ReadFile(w.agentFile("agent-1"))
	if err != nil || !strings.Contains(string(text), "Lyra") {
		t.Errorf("%v\n%s", err, text)
	}
	w.stop()
}
