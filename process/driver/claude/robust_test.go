package claude_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/claude"
)

const (
	floodPieces = 5000     // pieces of text, as fast as they can be written
	floodLine   = 11 << 20 // bytes of one line; the longest that was observed
	floodCall   = 1 << 20  // bytes of one argument
	flooding    = 3 * time.Minute
)

// flood writes without waiting for the reader: noise, text in thousands of pieces, a line of 11
// MiB, and then a call, a question about it and text without a pause.
func flood() {
	out := &strings.Builder{}
	say := func(format string, args ...any) { fmt.Fprintf(out, format+"\n", args...) }
	say("npm warn: this is no message")
	say(`{"type":"stream_event","event":{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}}`)
	for i := range floodPieces {
		say(`{"type":"stream_event","event":{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"w%d\n"}}}`, i)
	}
	say(`{"type":"what_is_this","at":1}`)
	say(`{"type":"user","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"t0","content":%q}]}}`,
		strings.Repeat("x", floodLine))
	say(`{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t1","name":"Write","input":{"file_path":"/big","content":%q}}]}}`, strings.Repeat("y", floodCall))
	say(`{"type":"control_request","request_id":"q1","request":{"subtype":"can_use_tool","tool_name":"Write","tool_use_id":"t1","input":{"file_path":"/big"}}}`)
	_, _ = os.Stdout.WriteString(out.String())
}

// TestFlood expects all events in order, regardless of the amount and speed of the output.
func TestFlood(t *testing.T) {
	me, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	agent := driver.Agent{Name: "coder", Command: []string{me, pretend}, Workspace: t.TempDir()}
	session := driver.Session{ID: "coder-9", Kind: driver.Work, Prompt: "flood", Attempt: 1}
	launch, err := claude.Driver{}.Launch(agent, session)
	if err != nil {
		t.Fatal(err)
	}
	p := drivertest.Start(t, launch)
	ctx, cancel := context.WithTimeout(t.Context(), flooding)
	defer cancel()
	talk := claude.Driver{}.Converse(agent, session, p)
	words, order := 0, []string{}
	var stop driver.Stop
	for f, err := range talk.Facts(ctx, 0) {
		if err != nil {
			t.Fatal(err)
		}
		switch {
		case f.Kind == driver.Said && f.Tool == "":
			if f.Text == fmt.Sprintf("w%d", words) {
				words++
			}
		case f.Kind == driver.ToolCalled, f.Kind == driver.PermissionAsked, f.Kind == driver.Faulted:
			order = append(order, string(f.Kind))
		case f.Kind == driver.Stopped:
			stop = *f.Stop
		}
		if f.Kind == driver.PermissionAsked {
			if err := talk.Answer(ctx, f.Ask.ID, "allow"); err != nil {
				t.Fatal(err)
			}
		}
	}
	if words != floodPieces {
		t.Errorf("%d of %d pieces were reported in order", words, floodPieces)
	}
	if got, want := strings.Join(order, " "), "faulted tool_called permission_asked"; got != want {
		t.Errorf("events: %s, want %s", got, want)
	}
	if !stop.OK {
		t.Errorf("ended with %+v", stop)
	}
	p.Wait(t)
}
