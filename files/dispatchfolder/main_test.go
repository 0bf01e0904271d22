package dispatchfolder

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/internal/test/leaktest"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // times in the files are local
	if order := os.Getenv(childEnv); order != "" {
		var times int
		var path string
		_, err := fmt.Sscan(order, &times, &path)
		if err == nil {
			err = child(path, times)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // without this every program of the test would wait a second at its end
	os.Exit(leaktest.Main(m))
}

var at = time.Date(2024, 12, 18, 14, 30, 22, 0, time.UTC)

func two() []dispatch.Description {
	return []dispatch.Description{{Name: "fullstack-engineer", Text: "Use to write Python"}, {Name: "reviewer", Text: "Use to review"}}
}

func begin(t *testing.T, setup dispatch.Setup) *Folder {
	t.Helper()
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	if setup.Agents == nil {
		setup.Agents = two()
	}
	f, _, err := Create(filepath.Join(t.TempDir(), "session"), setup, Options{At: at})
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func do(t *testing.T, f *Folder, in dispatch.Input) []change.Change {
	t.Helper()
	changes, _, err := f.Do(at, change.Actor{Kind: "human", ID: "cli"}, in)
	if err != nil {
		t.Fatalf("%T: %v", in, err)
	}
	return changes
}

func TestAConversation(t *testing.T) {
	f := begin(t, dispatch.Setup{})
	do(t, f, dispatch.UserInput{Text: "Hello"})
	do(t, f, dispatch.Respond{Text: "Hi"})
	s, err := f.Session()
	if err != nil || s.Phase != dispatch.Ready || s.Made != 1 {
		t.Fatalf("%+v %v", s, err)
	}
	for _, name := range []string{"state.jsonl", "conversations/messages.jsonl", "conversations/conv_001/dialogue.md"} {
		b, err := os.ReadFile(filepath.Join(f.Path(), name))
		if err != nil {
			t.Fatal(err)
		}
		if len(b) == 0 || b[len(b)-1] != '\n' {
			t.Errorf("%s is not whole: %q", name, b)
		}
	}
}
