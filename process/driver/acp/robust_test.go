package acp

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/testsize"
	"github.com/fairlead-dev/fairlead/internal/test/wait"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// TestManyUpdates checks that five thousand updates at full speed are all handled. A well-known ACP
// library drops the connection in this case.
func TestManyUpdates(t *testing.T) {
	const n = 5000
	var want strings.Builder
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		for i := range n {
			f.says(fmt.Sprintf("%d ", i))
			fmt.Fprintf(&want, "%d ", i)
		}
		f.result(p, `{"stopReason":"end_turn"}`)
		f.next()
	})
	s.ended(true, "completed", "")
	if got := s.text(driver.Said); got != want.String()+"\n" {
		t.Errorf("%d bytes were said, %d of them arrived", want.Len(), len(got))
	}
}

// TestLongLine checks that a message of 11 MiB, the longest that was observed from a real program,
// and the message after it are handled. With the race detector the message is smaller, to save
// memory.
func TestLongLine(t *testing.T) {
	longLineBytes := 11 << 20
	if testsize.Race {
		longLineBytes = 3 << 20
	}
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"write","kind":"edit","rawInput":{"file_path":"big","content":"` +
			strings.Repeat("x", longLineBytes) + `"}}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`)
		f.says("after")
		f.result(p, `{"stopReason":"end_turn"}`)
		f.next()
	})
	s.ended(true, "completed", "")
	calls := s.of(driver.ToolCalled)
	if len(calls) != 1 || calls[0].Tool != "Write" || calls[0].Text != "big" || fmt.Sprint(calls[0].Cut) != "[content]" {
		t.Errorf("%d calls, cut %v", len(calls), calls[0].Cut)
	}
	if got := s.text(driver.Said); got != "after\n" {
		t.Errorf("said %q", got)
	}
}

// TestNoise checks that invalid and unknown messages are reported and have no other effect.
func TestNoise(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.print("Welcome to the program!")
		f.print("")
		f.print(`{"a":`)
		f.print(`[{"jsonrpc":"2.0","id":1,"result":{}}]`)
		f.greeted()
		p := f.expect("session/prompt")
		f.update(`{"sessionUpdate":"dance","step":1}`)
		f.update(`{"sessionUpdate":"available_commands_update","availableCommands":[]}`)
		f.update(`7`)
		f.print(`{"jsonrpc":"2.0","method":"_vendor/news","params":{"a":1}}`)
		f.print(`{"jsonrpc":"2.0","id":"x","method":"craft/drain","params":{}}`)
		if r := f.reply(`"x"`); r.Error == nil || r.Error.Code != methodNotFound {
			t.Errorf("answered %+v", r)
		}
		f.print(`{"jsonrpc":"2.0","id":3,"method":"fs/write_text_file","params":{"path":"/work/repo/a","content":"b"}}`)
		if r := f.reply(`3`); r.Error == nil || r.Error.Code != methodNotFound {
			t.Errorf("answered %+v", r)
		}
		f.print(`{"jsonrpc":"2.0","id":99,"result":{}}`)
		f.print(`{"jsonrpc":"2.0","id":%s0,"result":{}}`, p.ID)
		f.print(`{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"parse error"}}`)
		f.print(`{"id":{},"method":"x"}`)
		f.print(`{"id":4,"method":7}`)
		f.print(`{"id":5}`)
		// the ID as a string
		f.print(`{"jsonrpc":"2.0","id":"%s","result":{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}}`, p.ID)
		f.next()
	})
	s.ended(true, "completed", "")
	if got := len(s.of(driver.Faulted)); got != 11 {
		t.Errorf("%d faults:\n%s", got, s.raw.String())
	}
	for _, e := range s.of(driver.Said) {
		if e.Tool != "stdout" {
			t.Errorf("said %+v, which is not text of the agent", e)
		}
	}
}

// TestRepeatedFault checks that a program that repeats a fault does not fill the log.
func TestRepeatedFault(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		for range 500 {
			f.update(`{"sessionUpdate":"dance"}`)
		}
		f.result(p, `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`)
		f.next()
	})
	s.ended(true, "completed", "")
	if faults := s.of(driver.Faulted); len(faults) != sameFaultsMax || !strings.Contains(faults[sameFaultsMax-1].Text, "not reported") {
		t.Errorf("%d faults", len(faults))
	}
}

// TestBothWrite checks that a program that writes a lot before it reads causes no deadlock.
func TestBothWrite(t *testing.T) {
	s := newScene(t, driver.Turn, strings.Repeat("prompt ", 20_000))
	s.onEvent = func(s *scene, e driver.Fact) {
		if e.Kind == driver.Listening {
			close(s.orders)
		}
	}
	s.play(func(f *fake) {
		f.greeted()
		id := 100
		for range 200 { // questions whose answers are not read yet
			id++
			f.print(`{"jsonrpc":"2.0","id":%d,"method":"vendor/%s","params":{}}`, id, strings.Repeat("m", 5000))
		}
		f.result(f.expect("session/prompt"), `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`)
		for {
			f.next()
		}
	})
	s.ended(true, "completed", "")
}

// TestMessages checks that chunks of two messages become two lines, and that text of another
// session is not reported as the agent's.
func TestMessages(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		chunk := func(session, id, text string) {
			f.print(`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":%q,"update":{"sessionUpdate":"agent_message_chunk","messageId":%q,"content":{"type":"text","text":%q}}}}`, session, id, text)
		}
		chunk("s1", "m1", "one ")
		chunk("s2", "m9", "somebody else")
		chunk("s1", "m1", "message")
		chunk("s1", "m2", "another")
		f.update(`{"sessionUpdate":"agent_message_chunk","messageId":"m2","content":{"type":"resource_link","name":" a.go","uri":"file:///a.go"}}`)
		f.update(`{"sessionUpdate":"agent_message_chunk","messageId":"m3","content":{"type":"image","mimeType":"image/png","data":"AAAA"}}`)
		f.update(`{"sessionUpdate":"plan","entries":[{"content":"look","status":"completed"},{"content":"do","status":"pending"}]}`)
		f.update(`{"sessionUpdate":"plan","entries":[{"content":"look","status":"completed"},{"content":"do","status":"pending"}]}`)
		f.result(p, `{"stopReason":"end_turn"}`)
		f.next()
	})
	if got, want := s.text(driver.Said), "one message\nanothera.go file:///a.go\n[image image/png]\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	var plans []string
	for _, e := range s.of(driver.Said) {
		if e.Tool == "plan" {
			plans = append(plans, e.Text)
		}
	}
	if fmt.Sprint(plans) != "[[completed] look; [pending] do]" {
		t.Errorf("plans %q", plans)
	}
}

// TestUsage checks that usage that was reported during an answer is not added again at its end.
func TestUsage(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":100,"outputTokens":20}}}`)
		f.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":50,"outputTokens":-1}}}`)
		f.update(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.25,"currency":"USD"}}`)
		f.update(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":0.75,"currency":"USD"}}`)
		f.update(`{"sessionUpdate":"usage_update","used":3,"size":4,"cost":{"amount":99,"currency":"JPY"}}`)
		f.update(`{"sessionUpdate":"usage_update","cost":{"amount":0.5,"currency":"USD"}}`)
		f.result(p, `{"stopReason":"end_turn","usage":{"inputTokens":150,"outputTokens":40}}`)
		f.next()
	})
	var sum change.Usage
	for _, e := range s.of(driver.UsageReported) {
		sum.InputTokens, sum.OutputTokens, sum.CostUSD = sum.InputTokens+e.InputTokens, sum.OutputTokens+e.OutputTokens,
			sum.CostUSD+e.CostUSD
	}
	if want := (change.Usage{InputTokens: 150, OutputTokens: 40, CostUSD: 0.75}); sum != want {
		t.Errorf("used %+v, want %+v", sum, want)
	}
	if s.end.ContextPercent != 75 {
		t.Errorf("context %d %% full", s.end.ContextPercent)
	}
}

// TestResults checks that the result of a call is reported once, at its end, with images and
// terminals by name. The first content of a call is not its result, and the output of a read is not
// shown.
func TestResults(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"a","kind":"execute","status":"in_progress","rawInput":{"command":"ls"},"content":[{"type":"content","content":{"type":"text","text":"[in sub]"}}]}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"in_progress","content":[{"type":"content","content":{"type":"text","text":"half"}}]}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","content":[{"type":"content","content":{"type":"text","text":"half\n\u001b[1mwhole"}},{"type":"terminal","terminalId":"t1"}]}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"a","status":"completed","content":[{"type":"content","content":{"type":"text","text":"again"}}]}`)
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"b","kind":"edit","title":"x","locations":[{"path":"f"}]}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"b","status":"completed","content":[{"type":"content","content":{"type":"text","text":"The file was changed."}},{"type":"diff","path":"f","oldText":"a\nb\n","newText":"a\nc\n"}]}`)
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"c","kind":"read","title":"x","locations":[{"path":"f"}]}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c","status":"completed","content":[{"type":"content","content":{"type":"text","text":"secret"}}]}`)
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"d","kind":"execute","rawInput":{"command":"id"}}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"d","status":"failed","rawOutput":{"output":"uid=0"}}`)
		f.update(`{"sessionUpdate":"tool_call","toolCallId":"e","name":"mcp__docs__shot","rawInput":{"a":1}}`)
		f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"e","status":"completed","content":[{"type":"content","content":{"type":"image","data":"x","mimeType":"image/png","uri":"file:///work/a.png"}}]}`)
		f.result(p, `{"stopReason":"end_turn"}`)
		f.next()
	})
	var got []string
	for _, e := range s.of(driver.Said) {
		got = append(got, e.Tool+": "+e.Text)
	}
	want := []string{"Bash: half\n␛[1mwhole\n[terminal t1]", "Edit: f\n- b\n+ c", "Bash: uid=0", "mcp__docs__shot: [image a.png image/png]"}
	if !slices.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

// TestQuota checks the tokens of an answer in _meta, as Gemini CLI sends them.
func TestQuota(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		f.result(f.expect("session/prompt"),
			`{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":150,"output_tokens":40},"model_usage":[]}}}`)
		f.next()
	})
	if u := s.of(driver.UsageReported); len(u) != 1 || u[0].Usage != (change.Usage{InputTokens: 150, OutputTokens: 40}) {
		t.Errorf("used %+v", u)
	}
}

// TestQuotaByModel checks that the usage of each model, as Gemini CLI sends it, is reported by
// model, and not more than the total.
func TestQuotaByModel(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		f.result(f.expect("session/prompt"),
			`{"stopReason":"end_turn","_meta":{"quota":{"token_count":{"input_tokens":150,"output_tokens":40},"model_usage":[`+
				`{"model":"pro","token_count":{"input_tokens":100,"output_tokens":30}},{"model":"flash","token_count":{"input_tokens":70,"output_tokens":5}},{"model":"x"}]}}}`)
		f.next()
	})
	want := []change.Usage{
		{InputTokens: 100, OutputTokens: 30, Model: "pro"},
		{InputTokens: 50, OutputTokens: 5, Model: "flash"},
		{OutputTokens: 5},
	}
	var got []change.Usage
	for _, e := range s.of(driver.UsageReported) {
		got = append(got, e.Usage)
	}
	if !slices.Equal(got, want) {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestUpdatesOfAnotherSession checks that updates of another session are faults and have no other
// effect.
func TestUpdatesOfAnotherSession(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		for i := range 10 {
			f.session = "stranger"
			f.update(fmt.Sprintf(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":%d,"currency":"USD"}}`, 5000*(i%2)))
			f.update(`{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"x"},"_meta":{"usage":{"inputTokens":100,"outputTokens":20}}}`)
			f.update(`{"sessionUpdate":"current_mode_update","currentModeId":"yolo"}`)
			f.session = "s1"
			f.update(fmt.Sprintf(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":%d,"currency":"USD"}}`, i))
		}
		f.result(p, `{"stopReason":"end_turn"}`)
		f.next()
	})
	s.ended(true, "completed", "")
	var sum change.Usage
	for _, e := range s.of(driver.UsageReported) {
		sum.InputTokens, sum.CostUSD = sum.InputTokens+e.InputTokens, sum.CostUSD+e.CostUSD
	}
	if want := (change.Usage{CostUSD: 9}); sum != want {
		t.Errorf("used %+v, want %+v", sum, want)
	}
	if got := len(s.of(driver.Faulted)); got != 30 {
		t.Errorf("%d faults, want 30", got)
	}
	if c := s.of(driver.ConversationNamed); len(c) != 1 || c[0].Conversation.Mode == "yolo" {
		t.Errorf("named %+v", c)
	}
}

// TestCallsAreReportedOnce checks that a call is reported once: when it is complete, when a question
// about it comes, when it ends, or when nothing follows.
func TestCallsAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScene(t, driver.Work, "go")
		s.play(func(f *fake) {
			f.greeted()
			p := f.expect("session/prompt")
			f.update(`{"sessionUpdate":"tool_call","toolCallId":"late","title":"bash","kind":"execute","status":"pending","rawInput":{"cwd":"/work/repo"}}`)
			f.update(`{"sessionUpdate":"tool_call","toolCallId":"whole","title":"bash","kind":"execute","status":"pending","rawInput":{}}`)
			f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"whole","status":"in_progress","title":"Run ls","rawInput":{"command":"ls"}}`)
			f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"whole","status":"completed","title":"done"}`)
			f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"only an update","status":"failed","_meta":{"toolName":"write_file"}}`)
			f.says("so")
			wait.Elapse(3 * time.Second) // of the bubble's clock
			f.update(`{"sessionUpdate":"tool_call","toolCallId":"end","title":"think hard","kind":"think"}`)
			f.result(p, `{"stopReason":"end_turn"}`)
			f.next()
		})
		var allowed []string
		for _, e := range s.of(driver.ToolCalled) {
			allowed = append(allowed, e.Tool+" "+e.Text)
		}
		if got, want := strings.Join(allowed, "; "), "Bash ls; Write Write; Bash bash; think think hard"; got != want {
			t.Errorf("tool calls %s\nwant %s", got, want)
		}
	})
}

// TestCallsWithOneID checks that calls are reported separately if a program restarts its numbering
// with each answer, or sends no number.
func TestCallsWithOneID(t *testing.T) {
	s := newScene(t, driver.Turn, "one")
	s.onEvent = func(s *scene, e driver.Fact) {
		switch n := len(s.of(driver.Listening)); {
		case e.Kind == driver.PermissionAsked:
			s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "yes"})
		case e.Kind == driver.Listening && n == 1:
			s.order(speech.Order{Type: speech.OrderPrompt, Text: "two"})
		case e.Kind == driver.Listening:
			close(s.orders)
		}
	}
	s.play(func(f *fake) {
		f.greeted()
		for i := range 2 {
			p := f.expect("session/prompt")
			f.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","toolCallId":"c1","kind":"execute","status":"pending","rawInput":{"command":"a%d"}}`, i))
			f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`)
			f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","content":[]}`)
			f.asks(`1`, fmt.Sprintf(`{"toolCallId":"c1","kind":"execute","status":"pending","rawInput":{"command":"b%d"}}`, i))
			f.reply(`1`)
			f.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","kind":"execute","rawInput":{"command":"c%d"}}`, i))
			f.update(fmt.Sprintf(`{"sessionUpdate":"tool_call","kind":"execute","rawInput":{"command":"d%d"}}`, i))
			f.result(p, `{"stopReason":"end_turn"}`)
		}
		f.next()
	})
	s.ended(true, "completed", "")
	var allowed []string
	for _, e := range s.of(driver.ToolCalled) {
		allowed = append(allowed, e.Text)
	}
	if got, want := strings.Join(allowed, " "), "a0 b0 c0 d0 a1 b1 c1 d1"; got != want {
		t.Errorf("tool calls %s\nwant %s", got, want)
	}
}

// TestPrompts checks empty and unusual prompts.
func TestPrompts(t *testing.T) {
	s := newScene(t, driver.Work, " \n").play(func(f *fake) { f.greeted(); f.next() })
	s.ended(false, "failed", "session_prompt")
	s = newScene(t, driver.Turn, "")
	close(s.orders)
	s.play(func(f *fake) { f.greeted(); f.next() })
	s.ended(true, "completed", "")
}

// FuzzMembers checks that an object has the members that encoding/json finds in it.
func FuzzMembers(f *testing.F) {
	for _, seed := range []string{
		`{}`, `null`, `[{"a":1}]`, `"{"`, ` { } `, `{"a":1,"b":-1.5e+3,"a":null,"":[],"c":{"d":[{"e":"}"}]},"f":true}`,
		"{\t\"a\" :\r\n\"x\" , \"b\":[ 1 , [ ] , { } ] }", `{"\u0061\"":"\\","b\\":"\"]"}`, `{"a":"\ud800","\ud800":0}`,
		"{\"\xff\":\"\xff\"}", `{"a":"b\\\\","c":false}`, `{"a":1}x`, `{"a"`, `{"a":"`, `{"a":[`, `{"a":"\`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var want map[string]json.RawMessage
		if json.Unmarshal(b, &want) != nil {
			want = nil
		}
		if got := objectOf(b); len(got) != len(want) || (got == nil) != (want == nil) {
			t.Fatalf("%q has %d members, want %d", b, len(got), len(want))
		} else {
			for name, value := range want {
				if string(got[name]) != string(value) {
					t.Errorf("%q: %q is %q, want %q", b, name, got[name], value)
				}
				var text string
				if json.Unmarshal(value, &text) != nil {
					text = ""
				}
				if got.text(name) != text {
					t.Errorf("%q: the text of %q is %q, want %q", b, name, got.text(name), text)
				}
			}
		}
		members(b) // what is not valid has some members or none
	})
}

// FuzzHear checks that the decoder accepts any input.
func FuzzHear(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"result":{"stopReason":"end_turn"}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"tool_call","toolCallId":"c","title":"write","kind":"edit","rawInput":{"filePath":"a"},"locations":[{"path":"a"}],"content":[{"type":"diff","path":"a","oldText":null,"newText":"b"}]}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"plan","entries":[{"content":"x","status":"pending"}]}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"config_option_update","configOptions":[{"id":"mode","category":"mode","currentValue":"a","options":[{"value":"a","options":[{"value":"b"}]}]}]}}}`,
		`{"jsonrpc":"2.0","method":"session/update","params":{"update":{"sessionUpdate":"usage_update","cost":{"amount":1e300}},"_meta":{"usage":{}}}}`,
		`{"jsonrpc":"2.0","id":{},"method":"session/request_permission","params":{}}`,
		`{"jsonrpc":"2.0","id":"q","method":"session/request_permission","params":{"toolCall":{"toolCallId":"c","title":"rm","kind":"execute","rawInput":{"command":["a",""],"cmd":"b"}},"options":[{"optionId":"default","kind":"allow_once"}]}}`,
		`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":"q"}}`,
		`{"id":7,"error":{"code":1.5,"message":"429 retry after 1e9 h","data":{"retryAfter":"x","resetsAt":1e300}}}`,
		`{"id":7,"error":"x"}`, `{}`, `{"method":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if !json.Valid(b) || !strings.HasPrefix(strings.TrimLeft(string(b), " \t"), "{") || strings.ContainsAny(string(b), "\n") {
			t.Skip() // the adapter passes only complete objects
		}
		s := newScene(t, driver.Work, "go")
		s.onEvent = func(s *scene, e driver.Fact) {
			if e.Kind == driver.PermissionAsked {
				s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: ""})
			}
		}
		s.play(func(f *fake) {
			f.greeted()
			p := f.expect("session/prompt")
			f.print("%s", b)
			f.says("still here")
			f.result(p, `{"stopReason":"end_turn"}`)
			f.next()
		})
		if m := decode(b); m.kind == response {
			return // it may have ended the answer
		}
		if s.ended(true, "completed", ""); !strings.HasSuffix(s.text(driver.Said), "still here\n") {
			t.Errorf("said %q after %q", s.text(driver.Said), b)
		}
	})
}
