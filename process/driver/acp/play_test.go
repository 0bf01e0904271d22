package acp

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// TestWork plays a work session: one prompt and its answer.
func TestWork(t *testing.T) {
	s := newScene(t, driver.Work, "write a file").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		if !strings.Contains(string(p.Params), "write a file") {
			t.Errorf("prompted with %s", p.Params)
		}
		f.update(`{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`)
		f.says("I wri")
		f.says("te.\nDone")
		f.result(p, `{"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":20}}`)
		f.next()
	})
	s.ended(true, "completed", "")
	if got, want := s.kinds(), "conversation_named thought thought said said said said usage_reported stopped"; got != want {
		t.Errorf("events: %s\nwant:   %s", got, want)
	}
	if got, want := s.text(driver.Said), "I write.\nDone\n"; got != want {
		t.Errorf("said %q, want %q", got, want)
	}
	c := s.of(driver.ConversationNamed)[0].Conversation
	if c.ID != "s1" || c.Program != "fake 7" || c.Resumed || c.Enforced == "" {
		t.Errorf("conversation %+v", c)
	}
	if u := s.of(driver.UsageReported)[0].Usage; u.InputTokens != 100 || u.OutputTokens != 20 {
		t.Errorf("usage %+v", u)
	}
}

// TestImages checks that a program gets the images of its prompt if it reports that it takes
// images.
func TestImages(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "a.png"), filepath.Join(dir, "b.png")
	pixel := "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\b\x00\x00\x00\x00:~\x9bU"
	for name, text := range map[string]string{good: pixel, bad: "<svg></svg>"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, can := range []bool{true, false} {
		s := newScene(t, driver.Work, "")
		<-s.orders
		s.order(speech.Order{Type: speech.OrderStart, Text: "look at a.png", Images: []string{good, bad}})
		s.play(func(f *fake) {
			f.result(f.expect("initialize"),
				fmt.Sprintf(`{"protocolVersion":1,"agentCapabilities":{"promptCapabilities":{"image":%v}}}`, can))
			f.result(f.expect("session/new"), `{"sessionId":"s1"}`)
			p := f.expect("session/prompt")
			if got := strings.Contains(string(p.Params),
				`"data":"`+base64.StdEncoding.EncodeToString([]byte(pixel))+`","mimeType":"image/png"`); got != can ||
				strings.Count(string(p.Params), `"type":"image"`) > 1 {
				t.Errorf("takes images: %v; prompted with %s", can, p.Params)
			}
			f.result(p, `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`)
		})
		s.ended(true, "completed", "")
		if got := s.text(driver.Faulted); strings.Contains(got, "only the path of the image b.png") != can {
			t.Errorf("takes images: %v; a file that is no image: %q", can, got)
		}
	}
}

// TestTurnsSession checks that a session with turns continues until the orders are closed.
func TestTurnsSession(t *testing.T) {
	s := newScene(t, driver.Turn, "first")
	s.onEvent = func(s *scene, e driver.Fact) {
		switch n := len(s.of(driver.Listening)); {
		case e.Kind != driver.Listening:
		case n == 1:
			s.order(speech.Order{Type: speech.OrderPrompt, Text: "second"})
		case n == 2:
			close(s.orders)
		}
	}
	s.play(func(f *fake) {
		f.greeted()
		for {
			p := f.expect("session/prompt")
			f.says("I heard " + string(p.Params))
			f.result(p, `{"stopReason":"end_turn"}`)
		}
	})
	s.ended(true, "completed", "")
	if said := s.text(driver.Said); !strings.Contains(said, "first") || !strings.Contains(said, "second") {
		t.Errorf("said %q", said)
	}
	if listened := s.of(driver.Listening); len(listened) != 2 || listened[0].Input == 0 {
		t.Errorf("listened %+v", listened)
	}
}

// TestPermission checks that a permission question goes to the person or rule that answers it,
// after its call was reported.
func TestPermission(t *testing.T) {
	for option, want := range map[string]string{
		"yes": `{"outcome":{"optionId":"yes","outcome":"selected"}}`, "no": `"no"`,
		"": `"cancelled"`, "cancelled": `"cancelled"`,
	} {
		s := newScene(t, driver.Work, "go")
		s.onEvent = func(s *scene, e driver.Fact) {
			if e.Kind == driver.PermissionAsked {
				s.order(speech.Order{Type: speech.OrderAnswer, ID: "nobody's", Option: "yes"})
				s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "never offered"})
				s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: option})
				s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "yes"}) // too late
			}
		}
		s.play(func(f *fake) {
			f.greeted()
			p := f.expect("session/prompt")
			f.update(`{"sessionUpdate":"tool_call","toolCallId":"c1","title":"write","kind":"edit","status":"pending","rawInput":{}}`)
			f.asks(`"a-7"`, `{"toolCallId":"c1","kind":"edit","rawInput":{"filepath":"/work/repo/a.txt"},"locations":[{"path":"a.txt"}]}`)
			if r := f.reply(`"a-7"`); !strings.Contains(string(r.Result), strings.Trim(want, "{}")) &&
				!strings.Contains(string(r.Result), option) {
				t.Errorf("%s: answered %s", option, r.Result)
			}
			f.update(`{"sessionUpdate":"tool_call_update","toolCallId":"c1","status":"completed"}`)
			f.result(p, `{"stopReason":"end_turn"}`)
			f.next()
		})
		detail := "denied: write a.txt"
		if option == "yes" {
			detail = ""
		}
		s.ended(true, "completed", detail)
		if got, want := s.kinds(), "conversation_named tool_called permission_asked faulted permission_answered stopped"; got != want {
			t.Errorf("%q: events: %s\nwant: %s", option, got, want)
		}
		q := s.of(driver.PermissionAsked)[0]
		if q.Tool != "Write" || q.Text != "write a.txt" || fmt.Sprint(q.Paths) != "[/work/repo/a.txt]" ||
			string(q.Args) != `{"file_path":"/work/repo/a.txt"}` {
			t.Errorf("asked %+v, args %s", q, q.Args)
		}
	}
}

// TestOptionsWithOneID checks that an ID that says both yes and no is not offered. The question can
// be rejected, and the program gets the outcome "cancelled".
func TestOptionsWithOneID(t *testing.T) {
	s := newScene(t, driver.Work, "go")
	s.onEvent = func(s *scene, e driver.Fact) {
		if e.Kind == driver.PermissionAsked {
			s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "x"}) // not offered
			s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: e.Options[0].ID})
		}
	}
	s.play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.print(`{"jsonrpc":"2.0","id":7,"method":"session/request_permission","params":{"sessionId":"s1","toolCall":{"toolCallId":"c","title":"ls","kind":"execute"},` +
			`"options":[{"optionId":"x","name":"Yes","kind":"allow_once"},{"optionId":"x","name":"No","kind":"reject_once"}]}}`)
		if r := f.reply(`7`); !strings.Contains(string(r.Result), `"cancelled"`) {
			t.Errorf("answered %s", r.Result)
		}
		f.result(p, `{"stopReason":"end_turn"}`)
		f.next()
	})
	s.ended(true, "completed", "denied: run: ls")
	if q := s.of(driver.PermissionAsked); len(q) != 1 || len(q[0].Options) != 1 || q[0].Options[0].Kind != "reject_once" {
		t.Errorf("asked %+v", q)
	}
	if got := len(s.of(driver.Faulted)); got != 2 {
		t.Errorf("%d faults, want one for the options and one for the answer that was not offered", got)
	}
}

// TestWithdrawn checks a program that withdraws a question, or ends its answer while the question
// is open.
func TestWithdrawn(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.asks(`5`, `{"toolCallId":"c1","title":"ls","kind":"execute","rawInput":{"command":["bash","-lc","ls -l"]}}`)
		f.asks(`6`, `{"toolCallId":"c2"}`)
		f.print(`{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":5}}`)
		f.reply(`5`)
		f.result(p, `{"stopReason":"end_turn"}`)
		f.reply(`6`)
	})
	s.ended(true, "completed", "")
	if got, want := s.kinds(),
		"conversation_named tool_called permission_asked tool_called permission_asked permission_withdrawn permission_withdrawn stopped"; got != want {
		t.Errorf("events: %s\nwant:   %s", got, want)
	}
	if q := s.of(driver.PermissionAsked)[0]; q.Tool != "Bash" || q.Text != "run: ls -l" || len(q.Paths) != 0 {
		t.Errorf("asked %+v", q)
	}
}

// TestNamelessQuestion checks that a question without a tool name gets a name from its options'
// labels, for display only.
func TestNamelessQuestion(t *testing.T) {
	s := newScene(t, driver.Work, "go").play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.print(`{"jsonrpc":"2.0","id":1,"method":"session/request_permission","params":{"sessionId":"s1",` +
			`"toolCall":{"toolCallId":"c1","title":"{\"text\":\"busy\"}","kind":"other","rawInput":{"text":"busy"}},` +
			`"options":[{"optionId":"a","name":"Always Allow in project: set_status","kind":"allow_always"},{"optionId":"n","name":"Reject","kind":"reject_once"}]}}`)
		f.result(p, `{"stopReason":"end_turn"}`)
		f.next()
	})
	if q := s.of(driver.PermissionAsked)[0]; q.Tool != "other" || q.Text != `set_status: {"text":"busy"}` {
		t.Errorf("asked %+v", q)
	}
}

// TestSameID checks that two questions with the same ID are separate questions.
func TestSameID(t *testing.T) {
	s := newScene(t, driver.Work, "go")
	s.onEvent = func(s *scene, e driver.Fact) {
		if e.Kind == driver.PermissionAsked {
			s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: map[string]string{"ask-1": "yes", "ask-2": "no"}[e.ID]})
		}
	}
	var replies []string
	s.play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.asks(`1`, `{"toolCallId":"c1"}`)
		f.asks(`1`, `{"toolCallId":"c2"}`)
		replies = append(replies, string(f.reply(`1`).Result), string(f.reply(`1`).Result))
		f.result(p, `{"stopReason":"end_turn"}`)
		f.result(p, `{"stopReason":"refusal"}`) // answered twice
		f.next()
	})
	s.ended(true, "completed", "denied")
	if len(replies) != 2 || !strings.Contains(replies[0], "yes") || !strings.Contains(replies[1], "no") {
		t.Errorf("answered %q", replies)
	}
}

// TestCancel checks that an order to cancel ends the answer and the session, also if the program
// does not cooperate.
func TestCancel(t *testing.T) {
	for name, polite := range map[string]bool{"polite": true, "stubborn": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, driver.Work, "go")
				s.onEvent = func(s *scene, e driver.Fact) {
					if e.Kind == driver.PermissionAsked {
						s.order(speech.Order{Type: speech.OrderCancel})
					}
				}
				began := time.Now()
				s.play(func(f *fake) {
					f.greeted()
					p := f.expect("session/prompt")
					f.asks(`1`, `{"toolCallId":"c1"}`)
					f.expect("session/cancel")
					f.reply(`1`)
					if polite {
						f.result(p, `{"stopReason":"cancelled"}`)
					}
					f.next()
				})
				s.ended(false, "cancelled", "")
				if took := time.Since(began); took > 7*time.Second || polite && took > time.Second {
					t.Errorf("it took %v", took)
				}
				if got, want := s.kinds(), "conversation_named tool_called permission_asked permission_withdrawn stopped"; got != want {
					t.Errorf("events: %s\nwant:   %s", got, want)
				}
			})
		})
	}
}

// TestStop checks that SIGTERM acts like a cancel with another reason, and that a session that only
// listens ends at once.
func TestStop(t *testing.T) {
	s := newScene(t, driver.Lead, "")
	s.onEvent = func(s *scene, e driver.Fact) {
		if e.Kind == driver.Listening {
			close(s.stop)
		}
	}
	s.play(func(f *fake) {
		f.greeted()
		f.next()
	})
	s.ended(false, "terminated", "")
}

// TestFailures checks that a failing program leads to an error with instructions.
func TestFailures(t *testing.T) {
	for name, c := range map[string]struct {
		script         func(*fake)
		reason, detail string
	}{
		"dies in the greeting": {func(f *fake) { f.exit.Code = 3 }, "failed", "exit code 3"},
		"says nothing":         {func(f *fake) { f.next(); f.next() }, "failed", "did not answer initialize within"},
		"wrong version":        {func(f *fake) { f.result(f.next(), `{"protocolVersion":2}`); f.next() }, "failed", "speaks version 2"},
		"no version":           {func(f *fake) { f.result(f.next(), `{}`); f.next() }, "failed", "speaks version 0"},
		"greeting refused": {func(f *fake) {
			f.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"no"}}`, f.next().ID)
			f.next()
		}, "failed", "does not accept initialize: no"},
		"not signed in": {func(f *fake) {
			f.result(f.next(), `{"protocolVersion":1,"authMethods":[{"id":"x","name":"X","description":"Run x login"}]}`)
			f.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":"Authentication required"}}`, f.next().ID)
			f.next()
		}, "not_signed_in", "sign in first: Run x login"},
		"no id": {func(f *fake) {
			f.result(f.next(), `{"protocolVersion":1}`)
			f.result(f.next(), `{}`)
			f.next()
		}, "failed", "it returned no conversation id"},
		"dies in the answer": {
			func(f *fake) { f.greeted(); f.expect("session/prompt"); f.says("half") }, "died",
			"exit code 0; it had not finished",
		},
		"an error": {func(f *fake) {
			f.greeted()
			f.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"Internal error","data":{"details":"400 bad"}}}`,
				f.expect("session/prompt").ID)
			f.next()
		}, "failed", "Internal error: 400 bad"},
		"an error as words": {func(f *fake) {
			f.greeted()
			p := f.expect("session/prompt")
			f.says("[API Error: no model]")
			f.result(p, `{"stopReason":"end_turn"}`)
			f.next()
		}, "failed", "API Error: no model"},
		"a status as words": {func(f *fake) {
			f.greeted()
			p := f.expect("session/prompt")
			f.says("Error: 400 ")
			f.says(`{"error":"no such model"}`)
			f.result(p, `{"stopReason":"end_turn"}`)
			f.next()
		}, "failed", "Error: 400"},
		"a limit as words": {func(f *fake) {
			f.greeted()
			p := f.expect("session/prompt")
			f.says("Error: 429 Too Many Requests, retry after 90 s")
			f.result(p, `{"stopReason":"end_turn"}`)
			f.next()
		}, "rate_limited", "Too Many"},
		"a limit": {func(f *fake) {
			f.greeted()
			f.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32603,"message":"429 Too Many Requests, retry after 90 s"}}`,
				f.expect("session/prompt").ID)
			f.next()
		}, "rate_limited", "Too Many"},
		"refusal": {
			func(f *fake) { f.greeted(); f.result(f.expect("session/prompt"), `{"stopReason":"refusal"}`); f.next() }, "refused",
			"",
		},
		"too long": {func(f *fake) {
			f.greeted()
			f.result(f.expect("session/prompt"), `{"stopReason":"max_tokens"}`)
			f.next()
		}, "max_tokens", ""},
		"no reason": {
			func(f *fake) { f.greeted(); f.result(f.expect("session/prompt"), `{}`); f.next() }, "failed",
			"without a stop reason",
		},
		"new reason": {
			func(f *fake) { f.greeted(); f.result(f.expect("session/prompt"), `{"stopReason":"bored"}`); f.next() }, "failed",
			"bored",
		},
		"only itself": {func(f *fake) {
			f.greeted()
			f.result(f.expect("session/prompt"), `{"stopReason":"cancelled"}`)
			f.next()
		}, "cancelled", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newScene(t, driver.Work, "go").play(c.script)
				s.ended(false, c.reason, c.detail)
				if c.reason == "rate_limited" {
					if l := s.of(driver.RateLimited); len(l) != 1 || time.Until(l[0].Until) < 85*time.Second {
						t.Errorf("limits: %+v", l)
					}
				}
			})
		})
	}
}

// TestDeniedAndEnded checks that a "cancelled" of the program after a denial does not count as an
// order to cancel.
func TestDeniedAndEnded(t *testing.T) {
	s := newScene(t, driver.Work, "go")
	s.onEvent = func(s *scene, e driver.Fact) {
		if e.Kind == driver.PermissionAsked {
			s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "no"})
		}
	}
	s.play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.asks(`0`, `{"toolCallId":"c1","title":"rm -rf x","kind":"execute"}`)
		f.reply(`0`)
		f.result(p, `{"stopReason":"cancelled"}`)
		f.next()
	})
	s.ended(false, "denied", "run: rm -rf x")
}

// TestCancelAfterADenial checks that an earlier denied call is not reported as the reason of a
// cancelled session.
func TestCancelAfterADenial(t *testing.T) {
	s, denied := newScene(t, driver.Work, "go"), false
	s.onEvent = func(s *scene, e driver.Fact) {
		switch {
		case e.Kind != driver.PermissionAsked:
		case !denied:
			denied = true
			s.order(speech.Order{Type: speech.OrderAnswer, ID: e.ID, Option: "no"})
		default:
			s.order(speech.Order{Type: speech.OrderCancel})
		}
	}
	s.play(func(f *fake) {
		f.greeted()
		p := f.expect("session/prompt")
		f.asks(`0`, `{"toolCallId":"c1","title":"rm x","kind":"execute","rawInput":{"command":"rm x"}}`)
		f.reply(`0`)
		f.asks(`1`, `{"toolCallId":"c2"}`)
		f.expect("session/cancel")
		f.reply(`1`)
		f.result(p, `{"stopReason":"cancelled"}`)
		f.next()
	})
	s.ended(false, "cancelled", "")
	if d := s.end.Detail; d != "" {
		t.Errorf("detail %q", d)
	}
}

// TestResume checks that a conversation is resumed by the method that the program implements, and
// that replayed messages are not reported.
func TestResume(t *testing.T) {
	for name, c := range map[string]struct {
		can    string
		knows  string // the method that works
		calls  string
		reason string
	}{
		"resume": {`"sessionCapabilities":{"resume":{}},"loadSession":true`, "session/resume", "session/resume", "completed"},
		"resume in name": {
			`"sessionCapabilities":{"resume":{}},"loadSession":true`, "session/load", "session/resume session/load",
			"completed",
		},
		"load":              {`"loadSession":true`, "session/load", "session/load", "completed"},
		"neither":           {`"loadSession":false`, "", "", session.ReasonNotResumed},
		"it is not there":   {`"loadSession":true`, "", "session/load", session.ReasonNotResumed},
		"resume is nothing": {`"sessionCapabilities":{"resume":null}`, "", "", session.ReasonNotResumed},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, driver.Work, "go")
			s.part.Resume = "old-1"
			var calls []string
			s.play(func(f *fake) {
				f.session = "old-1"
				f.result(f.expect("initialize"), `{"protocolVersion":1,"agentCapabilities":{`+c.can+`}}`)
				for {
					r := f.next()
					switch {
					case r.Method == "session/prompt":
						if objectOf(r.Params).text("sessionId") != "old-1" {
							t.Errorf("prompted in %s", r.Params)
						}
						f.update(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":5,"currency":"USD"}}`)
						f.update(`{"sessionUpdate":"usage_update","used":1,"size":2,"cost":{"amount":5.5,"currency":"USD"}}`)
						f.says("new")
						f.result(r, `{"stopReason":"end_turn"}`)
					default:
						calls = append(calls, r.Method)
						f.says("old")
						f.update(`{"sessionUpdate":"tool_call","toolCallId":"c0","title":"old","rawInput":{"a":1}}`)
						if r.Method != c.knows {
							f.print(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"not found"}}`, r.ID)
							continue
						}
						f.result(r, `{}`)
					}
				}
			})
			s.ended(c.reason == "completed", c.reason, "")
			if got := strings.Join(calls, " "); got != c.calls {
				t.Errorf("called %s, want %s", got, c.calls)
			}
			if c.reason != "completed" {
				return
			}
			if got := s.text(driver.Said); got != "new\n" || len(s.of(driver.ToolCalled)) != 0 {
				t.Errorf("said %q, called %v", got, s.of(driver.ToolCalled))
			}
			if n := s.of(driver.ConversationNamed)[0].Conversation; n.ID != "old-1" || !n.Resumed {
				t.Errorf("conversation %+v", n)
			}
			if u := s.of(driver.UsageReported); len(u) != 1 || u[0].CostUSD != 0.5 {
				t.Errorf("usage %+v includes the cost of the earlier session", u)
			}
		})
	}
}

// TestTools checks that the program receives the address of the team's tools, and that no output
// contains it.
func TestTools(t *testing.T) {
	const token = "coder.coder-1.5e0c2f"
	for name, c := range map[string]struct{ can, url, token, want string }{
		"http": {
			`"mcpCapabilities":{"http":true}`, "http://127.0.0.1:1/mcp", token,
			`[{"headers":[{"name":"Authorization","value":"Bearer ` + token +
				`"}],"name":"fairlead","type":"http","url":"http://127.0.0.1:1/mcp"}]`,
		},
		"stdio":     {`"mcpCapabilities":{}`, "http://127.0.0.1:1/mcp", token, `"command":"/bin/fairlead"`},
		"in a view": {`"mcpCapabilities":{"http":true}`, "", "", `[{"args":["mcp"],"command":"/bin/fairlead","env":[],"name":"fairlead"}]`},
		"elsewhere": {
			`"mcpCapabilities":{"http":true}`, "", token,
			`[{"args":["mcp"],"command":"/bin/fairlead","env":[{"name":"FAIRLEAD_MCP_TOKEN","value":"` + token + `"}],"name":"fairlead"}]`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, driver.Work, "go")
			s.part.MCP = driver.MCP{URL: c.url, Token: c.token, Stdio: []string{"/bin/fairlead", "mcp"}}
			s.play(func(f *fake) {
				f.result(f.expect("initialize"), `{"protocolVersion":1,"agentCapabilities":{`+c.can+`}}`)
				r := f.expect("session/new")
				if got := string(objectOf(r.Params)["mcpServers"]); !strings.Contains(got, c.want) || !strings.Contains(got, c.token) {
					t.Errorf("servers %s", got)
				}
				f.result(r, `{"sessionId":"s1"}`)
				p := f.expect("session/prompt")
				f.says("my token is " + token)
				f.print(`{"method":"x/leak","params":{"token":%q}}`, token)
				f.result(p, `{"stopReason":"end_turn"}`)
				f.next()
			})
			s.ended(true, "completed", "")
			if strings.Contains(s.raw.String(), token) && c.token != "" {
				t.Errorf("the token is in the output:\n%s", s.raw.String())
			}
		})
	}
}
