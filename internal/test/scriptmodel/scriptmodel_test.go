package scriptmodel_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/internal/test/scriptmodel"
)

const tools = `[
	{"type":"function","function":{"name":"write_file","parameters":{"properties":{"file_path":{"type":"string"},"content":{"type":"string"}}}}},
	{"type":"function","function":{"name":"run_shell_command","parameters":{"properties":{"command":{},"description":{"type":["string","null"]},"is_background":true}}}},
	{"type":"function","function":{"name":"mcp__fairlead__say","parameters":{"properties":{"text":{"type":"string"}}}}}]`

// used is an answer with a tool call, and the tool's result.
const used = `,{"role":"assistant","content":null,"tool_calls":[{"id":"x"}]},{"role":"tool","content":"it went well"}`

func user(text string) string {
	b, err := json.Marshal(text)
	if err != nil {
		panic(err)
	}
	return `{"role":"user","content":` + string(b) + `}`
}

func post(t *testing.T, s *scriptmodel.Server, path, body string) *http.Response {
	t.Helper()
	return postAs(t, t.Context(), s, scriptmodel.Key, path, body)
}

//nolint:revive // t first, as everywhere in tests
func postAs(t *testing.T, ctx context.Context, s *scriptmodel.Server, key, path, body string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+key)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { got.Body.Close() })
	return got
}

func TestTheListIsTakenItemByItem(t *testing.T) {
	t.Parallel()
	s := scriptmodel.Start(t)
	list := "Please.\ndo: think of it\ndo: write /w/a.txt hello you\nor [pm] do: bash ls -l | wc\ndo: mcp say {\"text\":\"hi\"}\ndo: say done\\nTURN_COMPLETE\ndo: write /w/never x"
	for name, c := range map[string]struct{ messages, want string }{
		"first": {user(list), `call write_file {"content":"hello you\n","file_path":"/w/a.txt"}`},
		"second": {
			user(list) + used,
			`call run_shell_command {"command":"ls -l | wc","description":"an item of the list","is_background":false}`,
		},
		"third":   {user(list) + used + used, `call mcp__fairlead__say {"text":"hi"}`},
		"last":    {user(list) + used + used + used, "say done\nTURN_COMPLETE"},
		"earlier": {user(list) + used + `,` + user("do: say new"), "say new"},
		"reminded": {
			user(list) + used + `,` + user("<system-reminder>do no harm</system-reminder>"),
			`call run_shell_command {"command":"ls -l | wc","description":"an item of the list","is_background":false}`,
		},
		"run out": {user("do: bash ls") + used, "say Done after 1 calls. The last result: it went well"},
		"none":    {user("hello"), "say There is nothing to do."},
		"parts":   {`{"role":"user","content":[{"type":"text","text":"one"},{"type":"text","text":"do: say two"}]}`, "say two"},
		"strange": {`{"role":"user","content":{"say":"do: say three"}}`, `say three"}`},
		"no such": {user("do: mcp fly {}"), "say No tool is offered whose name ends in fly."},
		"no json": {user("do: mcp say hello"), `call mcp__fairlead__say {"not_json":"hello"}`},
		"exactly": {user(`do: tool teleport {"to":"mars"}`), `call teleport {"to":"mars"}`},
		"result": {user("do: bash id\ndo: tool wait {\"for\":\"RESULT.id\"}") +
			strings.Replace(used, "it went well", `{\"id\":\"a7\"}`, 1), `call wait {"for":"a7"}`},
		"no result": {user("do: bash id\ndo: tool wait {\"for\":\"RESULT.id\"}") + used, `call wait {"for":"RESULT.id"}`},
		"read": {
			user("do: read /w/a.txt"),
			`call run_shell_command {"command":"cat /w/a.txt","description":"an item of the list","is_background":false}`,
		},
		"error":      {user("do: error 429 7"), "error 429"},
		"no error":   {user("do: error soon"), "error 500"},
		"not a verb": {user("do: dance"), "say There is nothing to do."},
	} {
		post(t, s, "/chat/completions", `{"model":"m","tools":`+tools+`,"messages":[`+c.messages+`]}`)
		all := s.Requests()
		if got := all[len(all)-1].Answer; got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestChat(t *testing.T) {
	t.Parallel()
	s := scriptmodel.Start(t)
	body := func(prompt string) string {
		return `{"model":"m","stream":true,"tools":` + tools + `,"messages":[` + user(prompt) + `]}`
	}
	text, calls, usage := "", "", 0
	for _, data := range stream(t, post(t, s, "/chat/completions", body("do: think hm\ndo: usage 7 3\ndo: bash echo hi"))) {
		var chunk struct {
			Choices []struct {
				Delta struct {
					Content   string `json:"content"`
					Reasoning string `json:"reasoning_content"`
					ToolCalls []struct {
						Function struct{ Name, Arguments string } `json:"function"`
					} `json:"tool_calls"`
				} `json:"delta"`
				Finish string `json:"finish_reason"`
			} `json:"choices"`
			Usage struct {
				Total int `json:"total_tokens"`
			} `json:"usage"`
		}
		if data != "[DONE]" && json.Unmarshal([]byte(data), &chunk) != nil {
			t.Fatalf("no JSON: %s", data)
		}
		usage += chunk.Usage.Total
		for _, c := range chunk.Choices {
			text += c.Delta.Reasoning + c.Delta.Content + c.Finish
			for _, one := range c.Delta.ToolCalls {
				calls += one.Function.Name + one.Function.Arguments
			}
		}
	}
	if text != "hmI use run_shell_command.tool_calls" || !strings.Contains(calls, `run_shell_command{"command":"echo hi"`) || usage != 10 {
		t.Errorf("said %q, called %s, used %d", text, calls, usage)
	}
	if got := stream(t, post(t, s, "/chat/completions", body("do: slow 5 1"))); len(got) != 1+5+1+1+1 {
		t.Errorf("5 slow words came in %d events: %q", len(got), got)
	}
	got := post(t, s, "/chat/completions", body("do: error 429 30"))
	if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") != "30" {
		t.Errorf("%s, retry after %q", got.Status, got.Header.Get("Retry-After"))
	}
}

// TestLetGo checks that a held answer waits until LetGo, and that its rest is then sent.
func TestLetGo(t *testing.T) {
	t.Parallel()
	s := scriptmodel.Start(t)
	const prompt = "do: hold wait\ndo: say for it"
	chat := post(t, s, "/chat/completions", `{"stream":true,"tools":`+tools+`,"messages":[`+user(prompt)+`]}`)
	whole := post(t, s, "/responses", `{"stream":true,"tools":[{"type":"function","name":"x"}],"input":[`+user(prompt)+`]}`)
	s.LetGo()
	if all := strings.Join(stream(t, chat), " "); !strings.Contains(all, `"\nfor it"`) || !strings.HasSuffix(all, "[DONE]") {
		t.Errorf("after LetGo it said %s", all)
	}
	if all := stream(t, whole); !strings.Contains(all[len(all)-1], `"wait\nfor it"`) {
		t.Errorf("after LetGo the response is %s", all[len(all)-1])
	}
}

// TestHeld checks that a held answer waits until the program disconnects, and that it blocks no
// other request.
func TestHeld(t *testing.T) {
	t.Parallel()
	s := scriptmodel.Start(t)
	ctx, hangUp := context.WithTimeout(t.Context(), time.Minute)
	defer hangUp()
	for api, body := range map[string]string{
		"/chat/completions": `{"stream":true,"tools":` + tools + `,"messages":[` + user("do: hold ä moment") + `]}`,
		"/responses":        `{"stream":true,"tools":[{"type":"function","name":"x"}],"input":"do: hold ä moment"}`,
	} {
		lines := bufio.NewScanner(postAs(t, ctx, s, scriptmodel.Key, api, body).Body)
		for lines.Scan() && !strings.Contains(lines.Text(), "oment") {
			continue
		}
		if err := lines.Err(); err != nil {
			t.Fatalf("%s: no text arrived: %v", api, err)
		}
	}
}

func TestResponses(t *testing.T) {
	t.Parallel()
	s := scriptmodel.Start(t)
	const tools = `[{"type":"custom","name":"apply_patch"},{"type":"function","name":"exec_command","parameters":{"properties":{"cmd":{"type":"string"}}}},
		{"type":"namespace","name":"mcp__fairlead","tools":[{"type":"function","name":"report_step"}]}]`
	input := `{"type":"message","role":"user","content":[{"type":"input_text","text":"do: write /w/a.txt hello\ndo: bash ls\ndo: mcp report_step {\"status\":\"ok\"}\ndo: say bye"}]}`
	const done = `,{"type":"reasoning","summary":[]},{"type":"function_call","name":"x","call_id":"c"},{"type":"function_call_output","call_id":"c","output":"fine"}`
	for i, want := range []string{
		`"input":"*** Begin Patch\n*** Add File: /w/a.txt\n+hello\n*** End Patch\n"`,
		`"arguments":"{\"cmd\":\"ls\"}"`,
		`"namespace":"mcp__fairlead"`,
		`"text":"bye"`,
	} {
		all := stream(t,
			post(t, s, "/responses",
				`{"model":"m","stream":true,"instructions":"be good","tools":`+tools+`,"input":[`+input+strings.Repeat(done, i)+`]}`))
		last := all[len(all)-1]
		if !strings.Contains(last, `"type":"response.completed"`) || !strings.Contains(last, want) {
			t.Errorf("answer %d ends with %s; wanted %s", i, last, want)
		}
	}
	if r := s.Requests()[1]; !r.Says("system", "be good") || !r.Says("tool", "fine") || r.Says("user", "fine") || r.Turns[2].Calls != 1 {
		t.Errorf("understood as %+v", r)
	}
	whole, err := io.ReadAll(post(t, s, "/responses", `{"input":"hello","tools":[{"type":"function","name":"x"}]}`).Body)
	if err != nil || !strings.Contains(string(whole), "nothing to do") {
		t.Errorf("in one piece: %s, %v", whole, err)
	}
}

// TestBesides checks other requests of a program: for a title, and for JSON of a given shape.
func TestBesides(t *testing.T) {
	t.Parallel()
	s := scriptmodel.Start(t)
	const shape = `{"type":"object","properties":{"next":{"type":"string","enum":["user","model"]},"n":{"type":"integer"},"ok":{"type":"boolean"},"why":{"type":"string"},"all":{"type":"array"}}}`
	for body, want := range map[string]string{
		`{"messages":[` + user("do: say no") + `]}`: "a conversation",
		`{"messages":[],"response_format":{"type":"json_schema","json_schema":{"schema":` + shape +
			`}}}`: `{\"all\":[],\"n\":1,\"next\":\"user\",\"ok\":false,\"why\":\"scripted\"}`,
	} {
		got, err := io.ReadAll(post(t, s, "/chat/completions", body).Body)
		if err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, %v", want, got, err)
		}
	}
	for what, c := range map[string]struct {
		key, path, body string
		want            int
	}{
		"a real key":    {"sk-real", "/chat/completions", "{}", http.StatusUnauthorized},
		"another place": {scriptmodel.Key, "/embeddings", "{}", http.StatusNotFound},
		"no JSON":       {scriptmodel.Key, "/chat/completions", "hello", http.StatusBadRequest},
		"no JSON here":  {scriptmodel.Key, "/responses", "[]", http.StatusBadRequest},
	} {
		if got := postAs(t, t.Context(), s, c.key, c.path, c.body); got.StatusCode != c.want {
			t.Errorf("%s: %s, want %d", what, got.Status, c.want)
		}
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/models", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+scriptmodel.Key)
	got, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if list, err := io.ReadAll(got.Body); err != nil || !bytes.Contains(list, []byte(`"parrot"`)) {
		t.Errorf("models: %s, %v", list, err)
	}
}

// FuzzRequests checks that any request gets an answer, and that equal requests get equal answers.
func FuzzRequests(f *testing.F) {
	f.Add(true, `{"stream":true,"messages":[{"role":"user","content":"do: say hi"}],"tools":`+tools+`}`)
	f.Add(true, `{"messages":[{"role":"user","content":[{"text":"do: write a b"}]}],"tools":[{"function":{"name":"write","parameters":{"properties":{"filePath":true}}}}]}`)
	f.Add(false,
		`{"stream":true,"input":[{"type":"custom_tool_call"},{"role":"user","content":"do: tool x {}"}],"tools":[{"type":"namespace","name":"n","tools":[{"name":"x"}]}]}`)
	f.Add(false, `{"input":"do: error 1 2","tools":[{"name":"x"}]}`)
	f.Add(true, `{"response_format":{"type":"json_schema","json_schema":{"schema":{"properties":{"a":{"enum":[1]}}}}}}`)
	f.Fuzz(func(t *testing.T, chat bool, body string) {
		if strings.Contains(body, "hold") || strings.Contains(body, "slow") || strings.Contains(body, `\u`) {
			t.Skip("it would wait")
		}
		first, second := scriptmodel.Answer(chat, []byte(body)), scriptmodel.Answer(chat, []byte(body))
		if first != second {
			t.Errorf("first %s, then %s", first, second)
		}
	})
}

// stream returns the data of all events.
func stream(t *testing.T, r *http.Response) []string {
	t.Helper()
	var all []string
	lines := bufio.NewScanner(r.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
			all = append(all, data)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}
