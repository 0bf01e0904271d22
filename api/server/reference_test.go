package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/read/view"
)

const referencePath = "../../doc/api.md"

const referenceHead = `<!-- Code generated from the routes by UPDATE=1 go test ./api/server; DO NOT EDIT. -->

# The API

Mission Control and the command line are clients of this API; other programs can do everything that
they do. The daemon serves the API on loopback and on a unix socket that only its owner can reach.
` + "`/api/v1/openapi.json`" + ` serves this reference as OpenAPI 3.1.

## Authentication

Over TCP, send the content of ` + "`.fairlead/token`" + `:

` + "```" + `
curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:7466/api/v1/agents
` + "```" + `

A browser signs in with a code that ` + "`fairlead open`" + ` issues: ` + "`POST /logins`" + ` exchanges it for a secret, which the page
sends in the same header. Cookies count for nothing. The files of the page need no token. The
socket, whose path is in ` + "`.fairlead/daemon.json`" + `, needs no token: the kernel reports the caller's user id.

` + "```" + `
curl --unix-socket "$SOCKET" http://fairlead/api/v1/agents
` + "```" + `

A request must name a loopback host and the daemon's port, otherwise the answer is 421. A request from
a page of another site gets 403.

## Problems

Errors are problem documents (RFC 9457), ` + "`application/problem+json`" + `. Their ` + "`detail`" + ` says what
happened and what to do.

| status | meaning |
|---|---|
| 400, 422 | the request cannot be understood; ` + "`errors`" + ` lists every fault with its location |
| 401 | the token is missing or wrong |
| 403, 421 | the request came from another site, or names another host |
| 404 | the name is unknown; ` + "`known`" + ` lists the known names |
| 405, 408, 413, 415 | wrong method (` + "`Allow`" +
	` lists the supported ones), too slow, too big (limit 1 MiB, for a document 2 MiB), not JSON |
| 409 | refused: the current state does not allow it; ` + "`refusal`" + ` says what it allows |
| 410 | the sequence is after the end of the journal: it belongs to another journal |
| 429 | four requests of one agent already wait for actions |
| 500, 504 | the request failed; the daemon did not answer in time |
| 503 | the daemon is stopping, or 2,000 streams are open, or 1,000 requests wait for actions |

## Streams

Streams are server-sent events. A comment every 15 seconds keeps an idle connection open. A client that
reconnects with the last ` + "`id`" + ` in ` + "`Last-Event-ID`" + ` gets every later event exactly once. The daemon
never waits for a client: one that takes nothing for 10 seconds is cut off, and can reconnect.

` + "```" + `
curl -N -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:7466/api/v1/events?tail=10"
` + "```" + `

Any text in an answer may have been written by an agent. Show it as text, never as HTML.

` + referenceMember + referenceCrew

// referenceMember is run by TestForeignAgentByTheBook exactly as written here.
const referenceMember = `## An agent of your own in a channel

An agent that Fairlead does not start can take part in channels by requests. In ` + "`fairlead.yaml`" + ` it has
` + "`loop: foreign`" + ` and is listed in a channel:

` + "```" + `yaml
agents:
  scout: {description: Looks around, loop: foreign}
channels:
  reviews: {agents: [scout]}
` + "```" + `

The agent joins, and from then on sends a heartbeat every ten seconds; any other request in its own name
counts as one. After three missed heartbeats it is OFFLINE and its turn is over.

` + "```" + `
ask() { curl -s -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" "$@"; }
API=http://127.0.0.1:7466/api/v1

ask -X POST $API/agents/scout/ready
{"heartbeat_ms":10000,"missed_max":3}
ask -X POST $API/agents/scout/heartbeat
{"heartbeat_ms":10000}
` + "```" + `

A person sends a message. The agent, which waits for actions, gets the turn. ` + "`text`" + ` is the complete
prompt for its model. When the model has received it, the agent confirms the action, which removes it from
the list. An agent that crashes before that gets the action again, with the same ` + "`key`" + `.

` + "```" + `
ask -X POST $API/channels/reviews/messages -d '{"text":"What do you see?"}'
{"message_id":"reviews/1"}
ask "$API/agents/scout/actions?wait=30s"
{"actions":[{"key":"tell_turn/reviews/scout/1","do":"tell_turn","channel":"reviews","turn":1,"text":"Channel reviews, turn 1: it is your turn…"}]}
ask -X POST $API/agents/scout/actions/done -d '{"key":"tell_turn/reviews/scout/1"}'
ask -X POST $API/channels/reviews/said -d '{"agent":"scout","turn":1,"text":"A fault in main.go.","complete":true}'
` + "```" + `

Every request names its turn. A message for a turn that is over is kept as late and changes no state.
In its next turn the agent waits for something, and the channel with it; then it continues:

` + "```" + `
ask -X POST $API/channels/reviews/messages -d '{"text":"Can you fix it?","mode":"queue"}'
{"message_id":"reviews/3"}
ask "$API/agents/scout/actions?wait=30s"
{"actions":[{"key":"tell_turn/reviews/scout/2","turn":2}]}
ask -X POST $API/agents/scout/actions/done -d '{"key":"tell_turn/reviews/scout/2"}'
ask -X POST $API/channels/reviews/wait -d '{"agent":"scout","turn":2,"why":"the tests run"}'
ask $API/channels/reviews
{"holder":"scout","state":"WAITING","why":"the tests run"}
ask -X POST $API/channels/reviews/go-on -d '{"agent":"scout","turn":2}'
ask -X POST $API/channels/reviews/said -d '{"agent":"scout","turn":2,"text":"It is fixed.","complete":true}'
ask $API/channels/reviews
{"holder":"","state":"PARKED","messages":4}
ask -X POST $API/agents/scout/leave
` + "```" + `
`

// referenceCrew is run by TestTeamByTheBook exactly as written here.
const referenceCrew = `
## A crew that sleeps and wakes

A lead reports the status of its crew; nothing else does. In ` + "`fairlead.yaml`" + ` the lead is an agent that
accepts input while it runs:

` + "```" + `yaml
agents:
  julian: {description: Leads the team, driver: script, script: julian.script.yaml}
team: {lead: julian, size: 2}
` + "```" + `

A summon makes a placeholder for each seat and notifies the lead. A client that follows
` + "`/events?after=HEAD`" + ` sees the placeholders become agents, as changes of machine ` + "`crew`" + `.

` + "```" + `
ask -X POST $API/crew/summon
{"team":{"button":"WAKING…","in_progress":"summoning","agents":[{"id":"agent-1","status":"hatching","name":null,"gridPosition":0},{"status":"hatching","gridPosition":1}]}}
ask $API/crew
{"button":"none","lead":{"agent":"julian","state":"heard"},"agents":[{"name":"Lyra","status":"alive"},{"name":"Kael","status":"alive"}]}
ask $API/crew/agents/Lyra
{"id":"agent-1","type":"agent-identity","color":"#c9b1e8","faceVariant":{"eyes":"standard","mouth":"gentle"},"individuationArtifact":"I am Lyra."}
ask "$API/crew/transcript?speaker=Lyra"
{"messages":[{"speaker":"Lyra","kind":"agent","text":"Good morning."}]}
` + "```" + `

When the lead's session ends, all members sleep. Fairlead wakes a member by sending its soul and transcript
to the lead. The member is alive only after the lead has reported it.

` + "```" + `
ask -X POST $API/crew/sleep
ask $API/crew
{"button":"WAKE","lead":{"session":"","state":"asleep"},"agents":[{"name":"Lyra","status":"sleeping"},{"name":"Kael","status":"sleeping"}]}
ask -X POST $API/crew/wake -d '{"agents":["Lyra"]}'
ask $API/crew
{"button":"WAKE","in_progress":"","agents":[{"name":"Lyra","status":"alive"},{"name":"Kael","status":"sleeping"}]}
` + "```" + `

A document from another device can be imported for a free seat. ` + "`--data-binary @agent-9.json`" + ` sends a file.

` + "```" + `
ask -X POST $API/crew/import -d '{"type":"agent-identity","status":"alive","name":"Mira","gridPosition":7,"color":"#88aacc"}'
{"name":"Mira","status":"unknown","gridPosition":7}
` + "```" + `
`

type schemaDoc struct {
	Ref         string `json:"$ref"`
	Type        any
	Description string
	Items       *schemaDoc
	AnyOf       []*schemaDoc
	Additional  json.RawMessage `json:"additionalProperties"`
	Properties  map[string]*schemaDoc
	Required    []string
	Enum        []any
	Default     any
	Minimum     *float64
	Maximum     *float64
	Pattern     string
	MaxLength   int
}

type openAPIDoc struct {
	OpenAPI string
	Paths   map[string]map[string]struct {
		OperationID string
		Summary     string
		Description string
		Parameters  []struct {
			Name, In, Description string
			Required              bool
			Schema                schemaDoc
		}
		RequestBody *struct {
			Required bool
			Content  map[string]struct{ Schema schemaDoc }
		}
		Responses map[string]struct {
			Content map[string]struct{ Schema schemaDoc }
		}
	}
	Components struct{ Schemas map[string]*schemaDoc }
}

func readOpenAPI(t testing.TB) openAPIDoc {
	t.Helper()
	var doc openAPIDoc
	if err := json.Unmarshal(OpenAPI(), &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestReference compares doc/api.md with the routes. Renew it with UPDATE=1.
func TestReference(t *testing.T) {
	doc := readOpenAPI(t)
	var out bytes.Buffer
	out.WriteString(referenceHead)
	out.WriteString(referenceHosts())
	out.WriteString("\n## Routes\n\nAll below `" + api.Base + "`.\n\n| | | |\n|---|---|---|\n")
	for _, rt := range routeTable() {
		fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", rt.Method, rt.Path, rt.Summary)
	}
	for _, rt := range routeTable() {
		op := doc.Paths[rt.Path][strings.ToLower(rt.Method)]
		fmt.Fprintf(&out, "\n### %s %s\n\n%s. %s\n", rt.Method, rt.Path, rt.Summary, rt.About)
		if len(op.Parameters) > 0 {
			out.WriteString("\n| parameter | in | is | |\n|---|---|---|---|\n")
		}
		for _, p := range op.Parameters {
			fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", p.Name, p.In, p.Schema.words(), p.Description)
		}
		if op.RequestBody != nil {
			body := op.RequestBody.Content["application/json"].Schema
			if body.Ref == "" { // not a type of Fairlead's
				fmt.Fprintf(&out, "\nBody: %s.\n", body.Description)
			} else {
				doc.body(&out, doc.Components.Schemas[body.name()], op.RequestBody.Required)
			}
		}
		given := op.Responses["200"].Content
		if made, ok := op.Responses["201"]; ok {
			given = made.Content
		}
		for kind, content := range given {
			answer := "`" + kind + "`"
			if name := content.Schema.name(); name != "" {
				answer = shape(name)
			}
			fmt.Fprintf(&out, "\nAnswer: %s\n", answer)
		}
	}
	out.WriteString("\n## Shapes\n\nLater versions may add fields; they do not rename any.\n")
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if strings.HasSuffix(name, "Body") {
			continue
		}
		fmt.Fprintf(&out, "\n### %s\n\n", name)
		doc.fields(&out, doc.Components.Schemas[name])
	}
	golden.Check(t, referencePath, out.String())
}

func shape(name string) string { return "[" + name + "](#" + strings.ToLower(name) + ")" }

func (s schemaDoc) name() string { return strings.TrimPrefix(s.Ref, "#/components/schemas/") }

// words is a short description of a value's type.
func (s schemaDoc) words() string {
	switch {
	case s.Ref != "":
		return shape(s.name())
	case len(s.AnyOf) > 0:
		var of []string
		for _, one := range s.AnyOf {
			of = append(of, one.words())
		}
		return strings.Join(of, " or ")
	case s.Items != nil:
		return "list of " + s.Items.words()
	case s.Type == nil:
		return "anything"
	}
	text := fmt.Sprint(s.Type)
	if either, ok := s.Type.([]any); ok {
		text = strings.TrimSpace(strings.ReplaceAll(strings.Trim(fmt.Sprint(either...), "[]"), "null", " or null"))
	}
	if text == "object" {
		text = "object of strings"
	}
	if len(s.Enum) > 0 {
		text += fmt.Sprintf(", one of %v", s.Enum)
	}
	if s.Maximum != nil {
		text += fmt.Sprintf(", at most %.0f", *s.Maximum)
	}
	if s.MaxLength > 0 {
		text += fmt.Sprintf(", at most %d characters", s.MaxLength)
	}
	if s.Default != nil && s.Default != float64(client.FromNow) {
		text += fmt.Sprintf(", else %.0f", s.Default)
	}
	return text
}

// body describes a request's body; nothing, if it has no fields.
func (d *openAPIDoc) body(out *bytes.Buffer, s *schemaDoc, required bool) {
	switch {
	case len(s.Properties) == 0:
		return
	case required:
		out.WriteString("\nBody:\n\n")
	default:
		out.WriteString("\nBody (optional):\n\n")
	}
	d.fields(out, s)
}

func (d *openAPIDoc) fields(out *bytes.Buffer, s *schemaDoc) {
	out.WriteString("| field | is | |\n|---|---|---|\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		p := s.Properties[name]
		kind := p.words()
		if !slices.Contains(s.Required, name) {
			kind += "; may be missing"
		}
		fmt.Fprintf(out, "| `%s` | %s | %s |\n", name, kind, p.Description)
	}
}

// The OpenAPI document describes every route, and fields by their tags.
func TestOpenAPI(t *testing.T) {
	doc := readOpenAPI(t)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("the OpenAPI version is %s", doc.OpenAPI)
	}
	n := 0
	for _, operations := range doc.Paths {
		n += len(operations)
	}
	if n != len(routeTable()) {
		t.Errorf("%d operations, %d routes", n, len(routeTable()))
	}
	ids := map[string]bool{}
	for _, rt := range routeTable() {
		op, ok := doc.Paths[rt.Path][strings.ToLower(rt.Method)]
		if !ok || op.OperationID != rt.ID || op.Responses["default"].Content[api.ProblemType].Schema.name() != "Problem" {
			t.Errorf("%s %s is not described correctly: %+v", rt.Method, rt.Path, op)
		}
		if ids[rt.ID] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(rt.ID) {
			t.Errorf("the id %s is a duplicate, or not of the form verb-noun", rt.ID)
		}
		ids[rt.ID] = true
	}
	agent := doc.Components.Schemas["AgentView"]
	for f := range reflect.TypeFor[view.AgentView]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if s := agent.Properties[name]; f.Tag.Get("doc") != "" && (s == nil || s.Description != f.Tag.Get("doc")) {
			t.Errorf("AgentView.%s is not described by the tag of its field", name)
		}
	}
	for _, name := range []string{"Change", "Output", "Ended", "Bye", "Problem", "Refusal"} {
		if doc.Components.Schemas[name] == nil {
			t.Errorf("the OpenAPI document has no schema %s", name)
		}
	}
	s := serve(t)
	text, h := s.want(t, 200, "GET", api.Base+"/openapi.json", "")
	var served map[string]any
	if err := json.Unmarshal([]byte(text), &served); err != nil || h.Get("Content-Type") != "application/openapi+json" {
		t.Errorf("%v, %v", h, err)
	}
}
