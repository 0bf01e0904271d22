package acp

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// toolWordsTests are descriptions of calls as programs send them (observed or documented), and the
// events made from them.
var toolWordsTests = map[string]struct {
	pieces []string // tool_call, updates, the call of a question
	tool   string
	args   string
	paths  string
	what   string
	unsure string
}{
	"opencode write": {
		pieces: []string{
			`{"toolCallId":"c","title":"write","kind":"edit","status":"pending","locations":[],"rawInput":{}}`,
			`{"toolCallId":"c","kind":"edit","title":"write","locations":[{"path":"a.txt"}],"rawInput":{"content":"x","filePath":"a.txt"}}`,
			`{"toolCallId":"c","title":"/work/repo/a.txt","kind":"edit","locations":[{"path":"/work/repo/a.txt"}],"rawInput":{"filepath":"/work/repo/a.txt","diff":"…"},"content":[{"type":"diff","path":"/work/repo/a.txt","oldText":"","newText":"x"}]}`,
		},
		tool: "Write", args: `{"content":"x","diff":"…","file_path":"a.txt","filepath":"/work/repo/a.txt"}`, paths: "[/work/repo/a.txt]",
		what: "a.txt",
	},
	"opencode outside": {
		pieces: []string{
			`{"toolCallId":"c","title":"write","kind":"edit","rawInput":{}}`,
			`{"toolCallId":"c","title":"/work","kind":"other","locations":[{"path":"/work/o.txt"},{"path":"/work"}],"rawInput":{"filepath":"/work/o.txt","parentDir":"/work"}}`,
		},
		tool: "Write", args: `{"file_path":"/work/o.txt","parentDir":"/work"}`, paths: "[/work/o.txt]", what: "/work/o.txt",
	},
	"opencode bash": {
		pieces: []string{
			`{"toolCallId":"c","title":"bash","kind":"execute","locations":[{"path":"/work/repo"}],"rawInput":{"cwd":"/work/repo"}}`,
			`{"toolCallId":"c","title":"go test","kind":"execute","locations":[],"rawInput":{"command":"go test"}}`,
		},
		tool: "Bash", args: `{"command":"go test","cwd":"/work/repo"}`, paths: "[]", what: "go test",
	},
	"opencode team's tool": {
		pieces: []string{`{"toolCallId":"c","title":"fairlead_turn_complete","kind":"other","rawInput":{"text":"x"}}`},
		tool:   "mcp__fairlead__turn_complete", args: `{"text":"x"}`, paths: "[]", what: "fairlead_turn_complete",
	},
	"another server with Fairlead's name": {
		pieces: []string{`{"toolCallId":"c","title":"fairlead_evil_say","kind":"other","rawInput":{"text":"x"}}`},
		tool:   "fairlead_evil_say", args: `{"text":"x"}`, paths: "[]", what: "fairlead_evil_say",
	},
	"qwen write": {
		pieces: []string{`{"toolCallId":"c","title":"Writing to a.txt","kind":"edit","rawInput":{"content":"x","file_path":"/work/repo/a.txt"},"locations":[{"path":"/work/repo/a.txt"}],"content":[{"type":"diff","path":"a.txt","oldText":"","newText":"x"}]}`},
		tool:   "Write", args: `{"content":"x","file_path":"/work/repo/a.txt"}`, paths: "[/work/repo/a.txt]", what: "a.txt",
	},
	"qwen edit": {
		pieces: []string{`{"toolCallId":"c","title":"edit","kind":"edit","rawInput":{"file_path":"/a","old_string":"x","new_string":"y"},"content":[{"type":"diff","path":"/a","oldText":"x","newText":"y"}],"_meta":{"toolName":"edit"}}`},
		tool:   "Edit", args: `{"file_path":"/a","new_string":"y","old_string":"x"}`, paths: "[/a]", what: "/a",
	},
	"qwen, named only at the end": {
		pieces: []string{`{"toolCallId":"c","status":"completed","_meta":{"toolName":"run_shell_command"}}`},
		tool:   "Bash", args: ``, paths: "[]", what: "Bash",
	},
	"an adapter's own tool": {
		pieces: []string{`{"toolCallId":"c","title":"Write a","kind":"edit","_meta":{"claudeCode":{"toolName":"mcp__acp__Write"}},"rawInput":{"file_path":"/a","content":"x"}}`},
		tool:   "Write", args: `{"content":"x","file_path":"/a"}`, paths: "[/a]", what: "/a",
	},
	"another server's tool": {
		pieces: []string{`{"toolCallId":"c","title":"x","_meta":{"claudeCode":{"toolName":"mcp__docs__search"}},"rawInput":{"q":"x"}}`},
		tool:   "mcp__docs__search", args: `{"q":"x"}`, paths: "[]", what: "x",
	},
	"command as words": {
		pieces: []string{`{"toolCallId":"c","title":"run","kind":"execute","rawInput":{"command":["rm","-rf","a b"]}}`},
		tool:   "Bash", args: `{"command":"rm -rf 'a b'"}`, paths: "[]", what: "rm -rf 'a b'",
	},
	"command in a shell": {
		pieces: []string{`{"toolCallId":"c","title":"run","kind":"execute","rawInput":{"command":["/bin/bash","-lc","ls | wc"]}}`},
		tool:   "Bash", args: `{"command":"ls | wc"}`, paths: "[]", what: "ls | wc",
	},
	"command in the title alone": {
		pieces: []string{`{"toolCallId":"c","title":"git status; rm -rf /impor…","kind":"execute"}`},
		tool:   "Bash", args: ``, paths: "[]", what: "git status; rm -rf /impor…", unsure: "[command]",
	},
	"a list of one command": {
		pieces: []string{`{"toolCallId":"c","title":"rm -rf build","kind":"execute","rawInput":{"commands":["rm -rf build"]}}`},
		tool:   "Bash", args: `{"command":"rm -rf build"}`, paths: "[]", what: "rm -rf build",
	},
	"a list of commands": {
		pieces: []string{`{"toolCallId":"c","title":"x","kind":"execute","rawInput":{"commands":["git status",{"command":"rm -rf build"}]}}`},
		tool:   "Bash", args: `{"command":"git status\nrm -rf build"}`, paths: "[]", what: "git status ⏎ rm -rf build",
	},
	"a list that may be words": {
		pieces: []string{`{"toolCallId":"c","title":"x","kind":"execute","rawInput":{"commands":["rm","-rf","build"]}}`},
		tool:   "Bash", args: `{"command":"rm\n-rf\nbuild"}`, paths: "[]", what: "rm ⏎ -rf ⏎ build", unsure: "[command]",
	},
	"a list, and another command": {
		pieces: []string{`{"toolCallId":"c","title":"x","kind":"execute","rawInput":{"command":"ls","commands":["rm -rf build"]}}`},
		tool:   "Bash", args: `{"command":"ls"}`, paths: "[]", what: "ls", unsure: "[command]",
	},
	"a command as the only argument": {
		pieces: []string{`{"toolCallId":"c","title":"x","kind":"execute","rawInput":"rm -rf build"}`},
		tool:   "Bash", args: `{"command":"rm -rf build"}`, paths: "[]", what: "rm -rf build",
	},
	"gemini command": {
		pieces: []string{`{"toolCallId":"c","title":"go test ./...","kind":"execute","status":"pending","locations":[],"content":[{"type":"content","content":{"type":"text","text":"[current working directory /work/repo] (Run tests)"}}]}`},
		tool:   "Bash", args: ``, paths: "[]", what: "go test ./...",
	},
	"gemini command in another folder": {
		pieces: []string{`{"toolCallId":"c","title":"go test ./...","kind":"execute","content":[{"type":"content","content":{"type":"text","text":"[in ../x]"}}]}`},
		tool:   "Bash", args: ``, paths: "[]", what: "go test ./...", unsure: "[command]",
	},
	"gemini tool of a server": {
		pieces: []string{`{"toolCallId":"c","title":"search (docs MCP Server)","kind":"other","content":[{"type":"content","content":{"type":"text","text":"{\"q\":\"x\"}"}}]}`},
		tool:   "mcp__docs__search", args: `{"q":"x"}`, paths: "[]", what: `search (docs MCP Server): {"q":"x"}`,
	},
	"a question's text": {
		pieces: []string{`{"toolCallId":"c","title":"Ask the user","kind":"other","content":[{"type":"content","content":{"type":"text","text":"Which port?"}}]}`},
		tool:   "other", args: ``, paths: "[]", what: "Ask the user: Which port?", unsure: "[tool]",
	},
	"gemini long arguments": {
		pieces: []string{`{"toolCallId":"c","title":"search (docs MCP Server)","kind":"other","content":[{"type":"content","content":{"type":"text","text":"[Payload omitted due to length with parameters: q]"}}]}`},
		tool:   "mcp__docs__search", args: ``, paths: "[]",
		what: "search (docs MCP Server): [Payload omitted due to length with parameters: q]", unsure: "[args]",
	},
	"gemini long arguments with a command": {
		pieces: []string{`{"toolCallId":"c","title":"say (fairlead MCP Server)","kind":"other","content":[{"type":"content","content":{"type":"text","text":"[Payload omitted due to length with parameters: command]"}}]}`},
		tool:   "other", args: ``, paths: "[]", what: "say (fairlead MCP Server): [Payload omitted due to length with parameters: command]",
		unsure: "[tool]",
	},
	"gemini tool of the team": {
		pieces: []string{`{"toolCallId":"c","title":"turn_complete (fairlead MCP Server)","kind":"other","content":[{"type":"content","content":{"type":"text","text":"[Payload omitted due to length with parameters: text]"}}]}`},
		tool:   "mcp__fairlead__turn_complete", args: ``, paths: "[]",
		what: "turn_complete (fairlead MCP Server): [Payload omitted due to length with parameters: text]",
	},
	"gemini title made of a command": {
		pieces: []string{`{"toolCallId":"c","title":"say (fairlead MCP Server)","kind":"other","content":[{"type":"content","content":{"type":"text","text":"{\"command\":\"say (fairlead MCP Server)\"}"}}]}`},
		tool:   "other", args: ``, paths: "[]", what: `say (fairlead MCP Server): {"command":"say (fairlead MCP Server)"}`,
		unsure: "[tool]",
	},
	"a patch as the only argument": {
		pieces: []string{`{"toolCallId":"c","title":"x","kind":"edit","rawInput":"*** Begin Patch\n*** Add File: secret/x\n+x\n*** End Patch"}`},
		tool:   "Edit", args: `{"file_path":"secret/x"}`, paths: "[/work/repo/secret/x]", what: "secret/x",
	},
	"a unified diff": {
		pieces: []string{`{"toolCallId":"c","title":"x","kind":"edit","rawInput":{"patch":"--- a/secret/x\n+++ b/secret/x\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/n\n"}}`},
		tool:   "Edit", args: `{"patch":"--- a/secret/x\n+++ b/secret/x\n@@ -1 +1 @@\n-x\n+y\n--- /dev/null\n+++ b/n\n"}`,
		paths: "[/work/repo/n /work/repo/secret/x]", what: "n, secret/x",
	},
	"a patch without files": {
		pieces: []string{`{"toolCallId":"c","title":"x","kind":"edit","locations":[{"path":"a"}],"rawInput":{"patch":"*** Begin Patch\n@@"}}`},
		tool:   "Edit", args: `{"file_path":"a","patch":"*** Begin Patch\n@@"}`, paths: "[/work/repo/a]", what: "a", unsure: "[paths]",
	},
	"two commands": {
		pieces: []string{`{"toolCallId":"c","kind":"execute","rawInput":{"command":"ls","cmd":"rm -rf /"}}`},
		tool:   "Bash", args: `{"cmd":"rm -rf /","command":"ls"}`, paths: "[]", what: "ls", unsure: "[command]",
	},
	"two files": {
		pieces: []string{`{"toolCallId":"c","kind":"edit","rawInput":{"file_path":"a","path":"../.git/config"}}`},
		tool:   "Edit", args: `{"file_path":"a","path":"../.git/config"}`, paths: "[/work/.git/config /work/repo/a]",
		what: "/work/.git/config, a",
	},
	"a patch": {
		pieces: []string{`{"toolCallId":"c","title":"Apply patch","kind":"edit","rawInput":{"changes":{"/work/repo/b":{},"/work/repo/a":{}}}}`},
		tool:   "Edit", args: `{"changes":{"/work/repo/b":{},"/work/repo/a":{}}}`, paths: "[/work/repo/a /work/repo/b]", what: "a, b",
	},
	"opencode's patch of two files": {
		pieces: []string{
			`{"toolCallId":"c","title":"apply_patch","kind":"other","rawInput":{"patchText":"*** Begin Patch\n*** Update File: src/a\n@@\n-x\n+y\n*** Move to: src/m\n*** Add File: .git/hooks/pre-commit\n+x\n*** End Patch"}}`,
			`{"toolCallId":"c","title":"edit","kind":"edit","locations":[],"rawInput":{"filepath":"src/a, .git/hooks/pre-commit","diff":"…","files":[{"filePath":"/work/repo/src/a","relativePath":"src/m","movePath":"/work/repo/src/m"},{"filePath":"/work/repo/.git/hooks/pre-commit"}]}}`,
		},
		tool: "Edit", paths: "[/work/repo/.git/hooks/pre-commit /work/repo/src/a /work/repo/src/m]",
		what: ".git/hooks/pre-commit, src/a, src/m",
		args: `{"diff":"…","files":[{"filePath":"/work/repo/src/a","relativePath":"src/m","movePath":"/work/repo/src/m"},{"filePath":"/work/repo/.git/hooks/pre-commit"}],"patchText":"*** Begin Patch\n*** Update File: src/a\n@@\n-x\n+y\n*** Move to: src/m\n*** Add File: .git/hooks/pre-commit\n+x\n*** End Patch"}`,
	},
	"a patch that moves": {
		pieces: []string{`{"toolCallId":"c","kind":"edit","rawInput":{"changes":{"a":{"type":"update","move_path":"../x"}}}}`},
		tool:   "Edit", args: `{"changes":{"a":{"type":"update","move_path":"../x"}}}`, paths: "[/work/x /work/repo/a]", what: "/work/x, a",
	},
	"a title that equals a tool's name": {
		pieces: []string{`{"toolCallId":"c","title":"mcp__fairlead__say","kind":"think","rawInput":{"prompt":"x"}}`},
		tool:   "think", args: `{"prompt":"x"}`, paths: "[]", what: "mcp__fairlead__say", unsure: "[tool]",
	},
	"a command whose first title equals a tool's name": {
		pieces: []string{
			`{"toolCallId":"c","title":"mcp__fairlead__say","kind":"execute"}`,
			`{"toolCallId":"c","title":"rm a","kind":"execute","rawInput":{"command":"rm a"}}`,
		},
		tool: "Bash", args: `{"command":"rm a"}`, paths: "[]", what: "rm a",
	},
	"a file named like a tool of Fairlead": {
		pieces: []string{`{"toolCallId":"c","title":"fairlead_say","kind":"read","locations":[{"path":"fairlead_say"}]}`},
		tool:   "Read", args: `{"file_path":"fairlead_say"}`, paths: "[/work/repo/fairlead_say]", what: "fairlead_say",
	},
	"a tool with a name, and with a title": {
		pieces: []string{`{"toolCallId":"c","title":"Read","kind":"think","_meta":{"toolName":"task"},"rawInput":{"prompt":"x"}}`},
		tool:   "task", args: `{"prompt":"x"}`, paths: "[]", what: "Read",
	},
	"a new file, by its diff": {
		pieces: []string{`{"toolCallId":"c","title":"Create","kind":"edit","content":[{"type":"diff","path":"file:///work/repo/n","newText":"x"}]}`},
		tool:   "Write", args: `{"content":"x","file_path":"file:///work/repo/n"}`, paths: "[/work/repo/n]", what: "n",
	},
	"delete": {
		pieces: []string{`{"toolCallId":"c","title":"Delete a","kind":"delete","locations":[{"path":"a"}]}`},
		tool:   "Edit", args: `{"file_path":"a"}`, paths: "[/work/repo/a]", what: "a",
	},
	"a wrong title": {
		pieces: []string{`{"toolCallId":"c","title":"read","kind":"execute","rawInput":{"command":"rm a"}}`},
		tool:   "Bash", args: `{"command":"rm a"}`, paths: "[]", what: "rm a",
	},
	"a file named like a tool": {
		pieces: []string{`{"toolCallId":"c","title":"glob","kind":"edit","locations":[{"path":"glob"}]}`},
		tool:   "Edit", args: `{"file_path":"glob"}`, paths: "[/work/repo/glob]", what: "glob",
	},
	"nothing": {pieces: []string{`{}`}, tool: "other", args: ``, paths: "[]", what: "other", unsure: "[tool]"},
	"search": {
		pieces: []string{`{"toolCallId":"c","title":"Look","kind":"search","rawInput":{"regex":"x","path":"/a"}}`}, tool: "Grep",
		args: `{"path":"/a","pattern":"x"}`, paths: "[/a]", what: "x",
	},
	"fetch": {
		pieces: []string{`{"toolCallId":"c","title":"Get","kind":"fetch","rawInput":{"url":"http://x/"}}`}, tool: "WebFetch",
		args: `{"url":"http://x/"}`, paths: "[]", what: "http://x/",
	},
	"odd": {
		pieces: []string{`{"toolCallId":7,"title":[],"kind":null,"rawInput":"x","locations":{},"content":[1]}`}, tool: "other",
		args: ``, paths: "[]", what: "other", unsure: "[tool]",
	},
}

func TestToolWords(t *testing.T) {
	for name, c := range toolWordsTests {
		t.Run(name, func(t *testing.T) {
			var call toolCall
			for i, piece := range c.pieces {
				if next := readToolCall(objectOf(json.RawMessage(piece))); i == 0 {
					call = next
				} else {
					call = call.with(next)
				}
			}
			tool := call.tool()
			args, _ := call.arguments(tool)
			if tool != c.tool || string(args.encoded()) != c.args {
				t.Errorf("got %s %s, want %s %s", tool, args.encoded(), c.tool, c.args)
			}
			if got := fmt.Sprint(call.absolute(tool, "/work/repo")); got != c.paths {
				t.Errorf("paths %s, want %s", got, c.paths)
			}
			if got := call.what(tool, "/work/repo"); got != c.what {
				t.Errorf("what: %q, want %q", got, c.what)
			}
			_, unsure := call.eventArguments(tool, "/work/repo", strings.HasPrefix(name, "gemini"))
			if c.unsure == "" {
				c.unsure = "[]"
			}
			if got := fmt.Sprint(unsure); got != c.unsure {
				t.Errorf("unsure %s, want %s", got, c.unsure)
			}
		})
	}
}

// TestCommandInOtherFolder checks that a command in another folder is not judged by its arguments.
func TestCommandInOtherFolder(t *testing.T) {
	for input, want := range map[string]string{
		`{"command":"rm x","cwd":"/work/repo"}`:   "[]",
		`{"command":"rm x","cwd":"/work/repo/."}`: "[]",
		`{"command":"rm x","cwd":"/etc"}`:         "[command]",
		`{"command":"rm x","directory":"sub"}`:    "[command]",
		`{"command":"rm x","workdir":""}`:         "[]",
		`{"command":"rm x","cmd":"y","cwd":"/x"}`: "[command]",
		`{"file_path":"x","directory":"sub"}`:     "[command]",
	} {
		c := readToolCall(objectOf(json.RawMessage(`{"kind":"execute","rawInput":` + input + `}`)))
		if _, cut := c.eventArguments("Bash", "/work/repo", false); fmt.Sprint(cut) != want {
			t.Errorf("%s: %v, want %s", input, cut, want)
		}
	}
}

// TestOptions checks that options keep the program's order and labels, and that one that also
// switches the mode is not a plain yes.
func TestOptions(t *testing.T) {
	modes := []choice{{id: "default"}, {id: "acceptEdits"}, {id: "plan"}}
	for list, want := range map[string]string{
		// Qwen Code
		`[{"optionId":"proceed_always","name":"Allow All Edits","kind":"allow_always"},{"optionId":"proceed_once","name":"Allow","kind":"allow_once"},{"optionId":"cancel","name":"Reject","kind":"reject_once"}]`: "proceed_always(allow_once_and_mode) proceed_once(allow_once) cancel(reject_once)",
		// OpenCode
		`[{"optionId":"once","kind":"allow_once","name":"Allow once"},{"optionId":"always","kind":"allow_always","name":"Always allow"},{"optionId":"reject","kind":"reject_once","name":"Reject"}]`: "once(allow_once) always(allow_always) reject(reject_once)",
		// Claude Code through its adapter, at the end of a plan
		`[{"kind":"allow_always","name":"Yes, and auto-accept edits","optionId":"acceptEdits"},{"kind":"allow_once","name":"Yes, and manually approve edits","optionId":"default"},{"kind":"reject_once","name":"No, keep planning","optionId":"plan"}]`: "acceptEdits(allow_once_and_mode) default(allow_once_and_mode) plan(reject_once)",
		`[{"optionId":"","kind":"allow_once"},{"optionId":"x"},7,null,{"optionId":"y","kind":"later"}]`: "x() y(later)",
		`{}`: "",
	} {
		var got []string
		for _, o := range readOptions(objectOf(json.RawMessage(`{"options":`+list+`}`)).list("options"), modes) {
			got = append(got, o.ID+"("+o.Kind+")")
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s\n gives %s\n want %s", list, got, want)
		}
	}
}

// A provider's rate limit is recognized by its text, including its end if it is given.
func TestRateLimit(t *testing.T) {
	now := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for words, want := range map[string]string{
		`{"message":"Internal error: 429 Too Many Requests"}`:                               "?",
		`{"message":"rate limit reached","data":{"retryAfter":30}}`:                         "12:00:30",
		`{"message":"x","data":{"status":429,"retry_after":"90"}}`:                          "12:01:30",
		`{"message":"x","data":{"statusCode":429}}`:                                         "?",
		`{"message":"You have hit your usage limit. Try again in 2 hours."}`:                "14:00:00",
		`{"message":"Rate limit exceeded, retry after 1.5s"}`:                               "12:00:01",
		`{"message":"quota exceeded; resets at 2026-11-20T15:30:00Z"}`:                      "15:30:00",
		`{"message":"usage limit","data":{"resetsAt":1795186800}}`:                          "15:00:00",
		`{"message":"usage limit","data":{"resetsAt":1700000000}}`:                          "?", // long ago
		`{"message":"rate_limit_error","data":{"details":"please wait 5 minutes"}}`:         "12:05:00",
		`{"message":"rate limit","data":{"retryAfter":1e12}}`:                               "?", // implausibly long
		`{"message":"Internal error: HTTP status 429"}`:                                     "?",
		`{"message":"the file has 429 lines"}`:                                              "",
		`{"message":"the limit of the array was exceeded"}`:                                 "",
		`{"code":-32603,"message":"Internal error","data":{"details":"400 no such model"}}`: "",
	} {
		until, limited := rateLimit(readError(json.RawMessage(words)), now)
		got := ""
		switch {
		case limited && until.IsZero():
			got = "?"
		case limited:
			got = until.Format(time.TimeOnly)
		}
		if got != want {
			t.Errorf("%s: %q, want %q", words, got, want)
		}
	}
}

// Errors come in many forms and are formatted in one line.
func TestErrorWords(t *testing.T) {
	for raw, want := range map[string]string{
		`{"code":-32603,"message":"Internal error","data":{"details":"400 bad"}}`:  "Internal error: 400 bad",
		`{"code":-32603,"message":"Internal error: bad","data":{"details":"bad"}}`: "Internal error: bad",
		`{"code":"x","message":"a\nb"}`:                                            "a b",
		`{"code":7}`:                                                               "error 7 without a message",
		`"just words"`:                                                             "just words",
		`{"message":"m","data":"d"}`:                                               "m: d",
		`[]`:                                                                       "error 0 without a message",
		`{"code":-32000,"message":"x","data":{"error":"session nope not found"}}`: "x: session nope not found",
		`{"message":"` + strings.Repeat("long ", 2000) + `"}`: clip(strings.TrimSpace(strings.Repeat("long ", 2000)),
			wordsBytesMax),
	} {
		if got := readError(json.RawMessage(raw)).words(); got != want {
			t.Errorf("%.80s: %q, want %q", raw, got, want)
		}
	}
}

// A program is recognized by its command, however it is started.
func TestKnownProgram(t *testing.T) {
	for command, want := range map[string]string{
		"/usr/bin/opencode acp":                         "OpenCode",
		"/usr/bin/node /x/node_modules/.bin/qwen --acp": "Qwen Code",
		"/usr/bin/npx @zed-industries/claude-code-acp":  "Claude Code by its ACP adapter",
		"/usr/local/bin/codex-acp":                      "Codex by its ACP adapter",
		"/usr/bin/gemini --experimental-acp":            "Gemini CLI",
		"/usr/bin/something":                            "",
		"/home/me/opencode/bin/other":                   "",
	} {
		if got := knownProgram(strings.Fields(command)).name; got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
	}
	for _, p := range programs {
		if p.seen == "" || p.asks == "" {
			t.Errorf("%s: where is it known from, and what holds it?", p.name)
		}
		for _, v := range p.env {
			if !json.Valid([]byte(v.value)) {
				t.Errorf("%s: %s is no JSON", p.name, v.name)
			}
		}
	}
	if add, ours := programs[0].environment([]string{"OPENCODE_PERMISSION={}"}); add != nil || ours {
		t.Errorf("what the agent's own environment says is overruled: %v", add)
	}
}
