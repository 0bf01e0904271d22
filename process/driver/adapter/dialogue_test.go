package adapter_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

func TestDialogues(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "dialogues", "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no dialogues: %v", err)
	}
	for _, file := range files {
		drivertest.Dialogue(t, plain{}, adapter.Part{}, file)
	}
}

// TestRecord checks that a recorded conversation produces the same events when it is played.
func TestRecord(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "echo.jsonl")
	part := adapter.Part{What: driver.Turn, Dir: dir, Command: []string{os.Args[0], programVerb, "echo"}}
	prompts := []speech.Order{{Type: speech.OrderStart, Text: "look at " + dir}, {Type: speech.OrderPrompt, Text: "two"}, {}}
	stop := drivertest.Record(t, plain{}, part, os.Environ(), file, func(e driver.Fact) []speech.Order {
		if e.Kind != "" && e.Kind != driver.Listening {
			return nil
		}
		next := prompts[:1]
		prompts = prompts[1:]
		return next
	}, os.Args[0], "/usr/bin/program")
	if !stop.OK {
		t.Fatalf("stopped %+v", stop)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(b, []byte(dir)) || bytes.Count(b, []byte(`"dir":"order"`)) != 2 ||
		bytes.Count(b, []byte("you said: look at /work/repo")) != 1 {
		t.Errorf("recorded:\n%s", b)
	}
	t.Chdir(dir)
	if err := os.MkdirAll(filepath.Join("testdata", "transcripts"), 0o777); err != nil {
		t.Fatal(err)
	}
	events := `{"type":"said","text":"you said: look at /work/repo","part":true}
{"type":"said"}
{"type":"listening","input":45}
{"type":"said","text":"you said: two","part":true}
{"type":"said"}
{"type":"listening","input":76}
{"type":"stopped","ok":true,"reason":"completed"}
`
	if err := os.WriteFile(filepath.Join("testdata", "transcripts", "echo.raw"), []byte(events), 0o666); err != nil {
		t.Fatal(err)
	}
	t.Setenv("UPDATE", "")
	part.Dir, part.Command = "", []string{"/usr/bin/program", programVerb, "echo"}
	drivertest.Dialogue(t, plain{}, part, file)
}
