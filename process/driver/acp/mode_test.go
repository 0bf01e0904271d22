package acp

import (
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// TestModeAndModel checks that a session does not begin unless the configured mode and model were
// set.
func TestModeAndModel(t *testing.T) {
	const modes = `"modes":{"currentModeId":"yolo","availableModes":[{"id":"default","name":"Default"},{"id":"yolo","name":"YOLO"}]}`
	const options = `"configOptions":[{"id":"model","category":"model","type":"select","currentValue":"a/m1","options":[{"value":"a/m1","name":"M1"},{"value":"a/m2","name":"M2"}]},` +
		`{"id":"mode","category":"mode","type":"select","currentValue":"build","options":[{"value":"build"},{"value":"plan"}]}]`
	for name, c := range map[string]struct {
		command, mode, model, opened string
		calls                        string
		named                        string
		failed                       string
	}{
		"mode":                 {mode: "default", opened: modes, calls: `session/set_mode "default"`, named: "default"},
		"mode by its name":     {mode: "Default", opened: modes, calls: `session/set_mode "default"`, named: "default"},
		"mode is there":        {mode: "yolo", opened: modes, named: "yolo"},
		"no such mode":         {mode: "plan", opened: modes, failed: "it has default, yolo"},
		"no modes":             {mode: "plan", failed: "has no modes"},
		"the one that asks":    {command: "/usr/bin/qwen", opened: modes, calls: `session/set_mode "default"`, named: "default"},
		"unknown program":      {opened: modes, named: "yolo"},
		"mode by option":       {mode: "plan", opened: options, calls: `session/set_config_option "plan"`, named: "plan", model: "m1"},
		"model by option":      {model: "m2", opened: options, calls: `session/set_config_option "a/m2"`, named: "build"},
		"no such model":        {model: "m9", opened: options, failed: "it has a/m1, a/m2"},
		"model without choice": {model: "m9", named: ""},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t, driver.Work, "go")
			s.part.Mode, s.part.Model = c.mode, c.model
			if c.command != "" {
				s.part.Command = []string{c.command}
			}
			var calls []string
			s.play(func(f *fake) {
				f.result(f.expect("initialize"), `{"protocolVersion":1}`)
				f.result(f.expect("session/new"), strings.ReplaceAll(`{"sessionId":"s1",`+c.opened+`}`, ",}", "}"))
				for {
					r := f.next()
					of := objectOf(r.Params)
					switch r.Method {
					case "session/set_mode":
						calls = append(calls, r.Method+" "+string(of["modeId"]))
						f.result(r, `{}`)
					case "session/set_config_option":
						calls = append(calls, r.Method+" "+string(of["value"]))
						f.result(r, `{`+
							strings.Replace(options,
								`"currentValue":"`+map[string]string{"mode": "build", "model": "a/m1"}[of.text("configId")]+`"`,
								`"currentValue":`+string(of["value"]), 1)+`}`)
					default:
						f.result(r, `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`)
					}
				}
			})
			if c.failed != "" {
				s.ended(false, "failed", c.failed)
				return
			}
			s.ended(true, "completed", "")
			if got := strings.Join(calls, "; "); got != c.calls {
				t.Errorf("called %s, want %s", got, c.calls)
			}
			all := s.of(driver.ConversationNamed)
			if got := all[len(all)-1].Conversation; got.Mode != c.named {
				t.Errorf("conversation %+v, want mode %q", got, c.named)
			}
		})
	}
}

// TestModeChanges checks that a mode change by the program is reported.
func TestModeChanges(t *testing.T) {
	s := newScene(t, driver.Work, "go")
	s.part.Mode = "default"
	s.play(func(f *fake) {
		f.result(f.expect("initialize"), `{"protocolVersion":1}`)
		f.result(f.expect("session/new"),
			`{"sessionId":"s1","modes":{"currentModeId":"default","availableModes":[{"id":"default"},{"id":"yolo"}]}}`)
		p := f.expect("session/prompt")
		f.update(`{"sessionUpdate":"current_mode_update","currentModeId":"yolo"}`)
		f.result(p, `{"stopReason":"end_turn"}`)
		f.next()
	})
	all := s.of(driver.ConversationNamed)
	if c := all[len(all)-1].Conversation; c.Mode != "yolo" || !strings.Contains(c.Enforced, "by itself") {
		t.Errorf("conversation %+v", c)
	}
}
