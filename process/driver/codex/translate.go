package codex

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

const itemsMax = 4096 // items per answer that are remembered as reported

// translator turns codex's lines into events. It starts and sends nothing.
type translator struct {
	adapter.Reporter
	part adapter.Part
	now  func() time.Time

	named      driver.Conversed
	items      map[string]bool // reported calls of this answer
	heard      adapter.Answers
	words      string                     // beginning of the answer's latest message
	lastError  string                     // codex's last error message
	unreported bool                       // that message has not been reported yet: often the end repeats it
	used       change.Usage               // the total that has been reported
	known      bool                       // used is valid: the thread's earlier usage is known
	model      func(thread string) string // the model of its last answer, by codex's record; empty: not recorded
	denied     []string
	finished   bool        // the answer has ended
	stop       driver.Stop // if finished: how
}

func newHearing(out *speech.Writer, part adapter.Part) *translator {
	return &translator{
		Reporter: adapter.Reporter{Out: out}, part: part, now: time.Now, known: part.Resume == "",
		heard: adapter.Answers{Table: providerErrors},
	}
}

// begin resets the state for a new answer, which is a new process.
func (h *translator) begin() {
	h.heard.Begin()
	h.items, h.words, h.lastError, h.unreported, h.finished, h.stop = make(map[string]bool), "", "", false, false, driver.Stop{}
}

// line handles one line.
func (h *translator) line(raw json.RawMessage) {
	e, err := read(raw)
	if err != nil {
		h.Fault("a line has a field of an unexpected type: "+err.Error(), raw)
	}
	if h.unreported && (e.Type != "turn.failed" || e.Error.Message != "" && e.Error.Message != h.lastError) {
		h.Notice(h.lastError) // for example, a connection that is retried
	}
	h.unreported = false
	switch e.Type {
	case "thread.started":
		h.name(driver.Conversed{ID: e.ThreadID})
	case "turn.started", "item.updated":
	case "item.started", "item.completed":
		if e.Item != nil {
			h.item(*e.Item, e.Type == "item.completed", raw)
		}
	case "error":
		away := awayWords.MatchString(e.Message)
		h.lastError, h.unreported = e.Message, !away
		if away {
			h.Out.Tell(driver.Fact{
				Kind: driver.ProviderAway, Provider: troubleOf(e.Message),
				Text: adapter.Clipped(e.Message, adapter.NoticeBytesMax),
			})
		}
	case "turn.completed":
		h.usage(e.Usage)
		if h.heard.EndsWithError(h.words) {
			h.failed(h.words)
			return
		}
		end := h.heard.Failure()
		switch {
		case end == nil:
			h.finished, h.stop = true, driver.Stop{OK: true, Reason: adapter.ReasonCompleted}
		case end.Reason == session.ReasonRateLimited || end.Reason == session.ReasonProviderError:
			if h.failed(end.Detail); h.stop.Reason == adapter.ReasonFailed {
				h.stop.Reason = session.ReasonProviderError
			}
		default:
			h.finished, h.stop = true, *end
		}
	case "turn.failed":
		h.usage(e.Usage)
		text := cmp.Or(e.Error.Message, h.lastError)
		h.failed(text)
	case "":
		if err == nil {
			h.Fault("a line without a type", raw)
		}
	default:
		h.Fault("a line of an unknown type: "+adapter.Clipped(e.Type, 80), raw)
	}
}

// failed handles the end of a failed answer.
func (h *translator) failed(text string) {
	stop, until := failed(text, h.now())
	if stop.Reason == session.ReasonRateLimited {
		h.Out.Tell(driver.Fact{Kind: driver.RateLimited, Until: until, Text: stop.Detail})
	}
	h.finished, h.stop = true, stop
}

// name reports the conversation and what restricts it if that has changed. Empty fields keep their
// value.
func (h *translator) name(c driver.Conversed) {
	next := h.named
	if c.ID != "" {
		next.ID = adapter.Clipped(c.ID, adapter.WhatBytesMax)
	}
	if c.Program != "" {
		next.Program = c.Program
	}
	next.Model, next.Mode, next.Enforced = h.part.Model, effective(h.part), enforced(h.part.Mode, h.part.Walled)
	next.Resumed = h.part.Resume != ""
	changed := next != h.named
	h.named = next
	if changed && next.ID != "" {
		h.Out.Tell(driver.Fact{Kind: driver.ConversationNamed, Conversation: &next})
	}
}

// usage reports the tokens used since the last answer. For a thread that began before this session,
// the earlier total comes from codex's record (rollout.go). Without a record, the first total is
// only the base for the next one.
func (h *translator) usage(u *usage) {
	if u == nil {
		return
	}
	total := change.Usage{InputTokens: u.Input.Count(), OutputTokens: u.Output.Count()}
	fresh := change.Usage{
		InputTokens:  max(total.InputTokens-h.used.InputTokens, 0),
		OutputTokens: max(total.OutputTokens-h.used.OutputTokens, 0),
	}
	switch {
	case !h.known:
		h.known = true
		h.heard.Work()
		h.Fault("the usage of this answer is unknown: codex reports the total of the conversation, and there is no record of its earlier usage", nil)
	case !fresh.Empty():
		h.heard.Work()
		if h.model != nil {
			fresh.Model = h.model(h.named.ID)
		}
		h.Out.Tell(driver.Fact{Kind: driver.UsageReported, Usage: fresh})
	}
	h.used = total
}

// item handles something that the agent says or does. Text is reported when it is complete. A call
// is reported when it begins or, if its beginning was not sent, when it ends.
func (h *translator) item(i item, over bool, raw json.RawMessage) {
	switch i.Type {
	case "agent_message", "plan":
		if over && i.Text != "" {
			h.words = clip.Text(i.Text, adapter.NoticeBytesMax)
			h.heard.Say(i.Text + "\n")
			h.Out.Say(driver.Said, "", i.Text)
		}
	case "reasoning":
		if over && i.Text != "" {
			h.Out.Say(driver.Thought, "", i.Text)
		}
	case "error":
		if over {
			h.Notice(i.Message)
		}
	case "command_execution", "file_change", "mcp_tool_call", "collab_tool_call", "web_search", "todo_list":
		h.words = ""
		h.heard.Call()
		if i.Type == "web_search" && !over {
			return // the query is known at the end
		}
		h.call(i, raw)
		if over {
			h.outcome(i)
		}
	default:
		h.Fault("an item of an unknown type: "+adapter.Clipped(i.Type, 80), raw)
	}
}

// call reports a tool call, once.
func (h *translator) call(i item, raw json.RawMessage) {
	if i.ID != "" && h.items[i.ID] {
		return
	}
	if i.ID != "" && len(h.items) < itemsMax && h.items != nil {
		h.items[i.ID] = true
	}
	if i.Type == "file_change" {
		for _, c := range i.Changes {
			path := absolute(h.part.Dir, c.Path)
			tool := "Edit"
			if c.Kind == "add" {
				tool = "Write"
			}
			h.tell(tool, path, speech.Args(map[string]string{"file_path": path, "change": c.Kind}), []string{path}, raw)
		}
		return
	}
	tool, what, args := i.call()
	h.tell(tool, what, args, nil, raw)
}

func (h *translator) tell(tool, what string, args json.RawMessage, paths []string, raw json.RawMessage) {
	h.Out.Tell(driver.Fact{
		Kind: driver.ToolCalled, Tool: tool, Text: adapter.Clipped(what, adapter.WhatBytesMax), Args: args,
		Ask: driver.Ask{Paths: paths}, Raw: speech.CutRaw(raw),
	})
}

// call translates an item into Claude Code's vocabulary.
func (i item) call() (tool, what string, args json.RawMessage) {
	switch i.Type {
	case "command_execution":
		command := unwrapped(i.Command)
		return "Bash", command, speech.Args(map[string]string{"command": command})
	case "mcp_tool_call":
		args = i.Arguments
		if len(args) == 0 || args[0] != '{' {
			args = nil
		}
		return "mcp__" + adapter.OneLine(i.Server) + "__" + adapter.OneLine(i.Tool), firstText(args), args
	case "collab_tool_call":
		return adapter.OneLine("agent_" + i.Tool), i.Prompt, speech.Args(map[string]string{"prompt": i.Prompt})
	case "web_search":
		return "WebSearch", i.Query, speech.Args(map[string]string{"query": i.Query})
	}
	var steps []string
	for _, s := range i.Items {
		steps = append(steps, s.Text)
	}
	return "TodoWrite", strings.Join(steps, "; "), nil
}

// firstText returns the first string argument in order of names, for people.
func firstText(args json.RawMessage) string {
	var fields map[string]any
	if json.Unmarshal(args, &fields) != nil {
		return ""
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if s, ok := fields[name].(string); ok && s != "" {
			return s
		}
	}
	return ""
}

// outcome reports what a call has printed, and records a denied one for the terminal event.
func (h *translator) outcome(i item) {
	tool, what, _ := i.call()
	if i.Type == "command_execution" {
		h.Out.Result(tool, i.Output)
	}
	for _, part := range i.Result.Content {
		h.Out.Result(tool, part.Text)
	}
	if i.Type == "file_change" {
		tool, what = "Edit", ""
		for _, c := range i.Changes {
			what = strings.TrimPrefix(what+", "+c.Path, ", ")
		}
	}
	said := clip.Text(strings.TrimSpace(tool+" "+adapter.OneLine(what)), adapter.WhatBytesMax)
	switch {
	case i.Status == "declined", i.Status == "failed" && deniedWords.MatchString(i.Error.Message):
		if len(h.denied) < adapter.DeniedMax && !slices.Contains(h.denied, said) {
			h.denied = append(h.denied, said)
		}
		h.Out.Tell(driver.Fact{
			Kind: driver.Said, Tool: "denied",
			Text: strings.TrimSuffix(said+": "+adapter.Clipped(i.Error.Message, adapter.NoticeBytesMax), ": "),
		})
	case i.Status == "failed" && i.Type != "command_execution":
		h.Notice(strings.TrimSuffix(said+" failed: "+i.Error.Message, ": "))
	}
}

func absolute(dir, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	return filepath.Clean(path)
}
