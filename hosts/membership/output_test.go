package membership

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// printed is a process that has printed a text and ended.
type printed struct {
	sessionhost.Process
	text []byte
}

func (p *printed) Output(_ context.Context, offset int64) (io.ReadCloser, error) {
	return io.NopCloser(bytes.NewReader(p.text[offset:])), nil
}

// TestOutputThatCannotBeKept checks that the output of a session on another host is kept as soon as there is room for
// it.
func TestOutputThatCannotBeKept(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "output")
	if err := os.WriteFile(folder, nil, 0o600); err != nil { // no folder can be made here
		t.Fatal(err)
	}
	proc := &printed{text: []byte("first\nsecond\n")}
	ended := make(chan struct{})
	o := &outputs{
		folder: folder, log: slog.New(slog.DiscardHandler), copied: map[string]chan struct{}{},
		run: func(do func(context.Context)) {
			go func() { defer close(ended); do(t.Context()) }()
		},
	}
	o.spool("coder-1", proc)
	if err := os.Remove(folder); err != nil {
		t.Fatal(err)
	}
	o.spooled(t.Context(), "coder-1")
	<-ended
	out, err := o.open("coder-1", 0)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	got, err := io.ReadAll(out)
	if err != nil || !bytes.Equal(got, proc.text) {
		t.Errorf("%q, %v", got, err)
	}
}
