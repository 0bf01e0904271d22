package codex_test

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/codex"
)

const (
	pretend = "__pretend" // runs this test binary as a program that speaks codex's protocol
	resumed = "01a1ff8d-9968-7f40-8862-ea3a677cf0f5"
)

func TestMain(m *testing.M) {
	time.Local = time.UTC // codex reports times in the machine's zone
	adapter.Intercept(codex.Driver{})
	if len(os.Args) > 1 && os.Args[1] == pretend {
		play(os.Args[2:])
		return
	}
	os.Setenv("GORACE", "atexit_sleep_ms=0") // otherwise every program here would wait a second at its end
	os.Exit(m.Run())
}

// play repeats its prompt.
func play(args []string) {
	if slices.Contains(args, "--version") {
		fmt.Println("codex-cli 0.0.1")
		return
	}
	prompt, err := io.ReadAll(os.Stdin)
	if err != nil || !slices.Contains(args, "--json") || args[len(args)-1] != "-" {
		os.Exit(3)
	}
	say := func(format string, args ...any) { fmt.Printf(format+"\n", args...) }
	say(`{"type":"thread.started","thread_id":"t1"}`)
	say(`{"type":"turn.started"}`)
	say(`{"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":%q}}`, prompt)
	say(`{"type":"turn.completed","usage":{"input_tokens":7,"output_tokens":2}}`)
}

// TestDialogues plays output of codex (codex-*), and invalid output (strange-*).
func TestDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/dialogues/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("there are no dialogues", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".jsonl")
		part := adapter.Part{Command: []string{"/usr/bin/codex"}, What: driver.Work}
		if strings.Contains(name, "-talk") {
			part.What = driver.Turn
		}
		if strings.Contains(name, "-resume") {
			part.Resume = resumed
		}
		if strings.Contains(name, "-readonly") {
			part.Mode = "read-only"
		}
		if strings.Contains(name, "-tools") {
			part.MCP = driver.MCP{URL: "http://127.0.0.1:7466/mcp", Token: "a-secret-token"}
		}
		drivertest.Dialogue(t, codex.Driver{}, part, file)
	}
}

func TestDriver(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", t.TempDir()) // the default program may be installed on this machine
	agent := driver.Agent{Name: "coder", Command: []string{me, pretend}}
	drivertest.Run(
		t, codex.Driver{},
		drivertest.Case{
			Name: "answers", Agent: agent, Session: driver.Session{ID: "coder-1", Kind: driver.Work, Prompt: "hello", Attempt: 1},
			Facts: []string{"conversation_named ", "said hello", "usage_reported ", "stopped completed"}, OK: true,
		},
	)
}
