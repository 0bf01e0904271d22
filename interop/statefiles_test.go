package interop

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// desk is a folder with a watched state file.
type desk struct {
	*StateFiles
	t      *testing.T
	folder string
	path   string
}

func newDesk(t *testing.T, content string) *desk {
	t.Helper()
	w, err := WatchStateFiles(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &desk{StateFiles: w, t: t, folder: t.TempDir()}
	d.path = filepath.Join(d.folder, FileName)
	if content != "" {
		d.put(content)
	}
	if err := w.Add("coder", d.folder); err != nil {
		t.Fatal(err)
	}
	if content != "" {
		d.expect(KindWritten, content)
	}
	return d
}

// put writes in place, as the seed's writer does.
func (d *desk) put(content string) {
	d.t.Helper()
	if err := os.WriteFile(d.path, []byte(content), 0o644); err != nil {
		d.t.Fatal(err)
	}
}

const longEnough = 10 * time.Second // a bound for the hopeless case, not a wait

func (d *desk) next() Seen {
	d.t.Helper()
	select {
	case s := <-d.StateFiles.Seen():
		return s
	case <-time.After(longEnough):
		d.t.Fatal("nothing was seen")
		return Seen{}
	}
}

func (d *desk) expect(kind Kind, content string) Seen {
	d.t.Helper()
	s := d.next()
	if s.Kind != kind || string(s.Bytes) != content {
		d.t.Fatalf("seen %s %q (%s), want %s %q", s.Kind, s.Bytes, s.Fault, kind, content)
	}
	return s
}

func wish(desired, note string) string {
	return string(AgentState{DesiredState: desired, CurrentState: Pause, Note: note}.Render())
}

func TestWhatOthersWriteIsSeen(t *testing.T) {
	d := newDesk(t, wish(Pause, "a"))
	d.put(wish(RunOnce, "b"))
	s := d.expect(KindWritten, wish(RunOnce, "b"))
	if s.State.DesiredState != RunOnce || s.Name != "coder" || s.Sum != SumOf(s.Bytes) || s.At.IsZero() {
		t.Errorf("%+v", s)
	}
	if err := d.Write(t.Context(), "coder", []byte(wish(Pause, "ours")), nil); err != nil {
		t.Fatal(err)
	}
	r, err := d.Read("coder")
	if err != nil || !r.Own || r.State.Note != "ours" {
		t.Fatalf("%+v, %v", r, err)
	}
}
