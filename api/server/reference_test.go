package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/client"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

const referencePath = "../../doc/api.md"

const referenceHead = `<!-- Code generated from the routes by UPDATE=1 go test ./api/server; DO NOT EDIT. -->

# The API

What Mission Control and the command line can do, programs can do: both are plain clients of
this API. The daemon serves it on loopback and on a unix socket that only its owner can reach.
The same as OpenAPI 3.1 is at ` + "`/api/v1/openapi.json`" + `.

## Who is let in

Over TCP the token is shown that stands in the link which ` + "`fairlead up`" + ` prints:

` + "```" + `
curl -H "Authorization: Bearer $TOKEN" http://127.0.0.1:7466/api/v1/agents
` + "```" + `

A browser opens the link itself: it gets a cookie, and the token leaves the address bar. Over the
socket, which ` + "`.fairlead/daemon.json`" + ` names, no token is needed: the kernel says who asks.

` + "```" + `
curl --unix-socket "$SOCKET" http://fairlead/api/v1/agents
` + "```" + `

A request must be addressed to a loopback name and our port, else the answer is 421; one that a
page of another site sends gets 403.

## Problems

What is not an answer is a problem document (RFC 9457), ` + "`application/problem+json`" + `, whose ` + "`detail`" + `
says what happened and what to do.

| status | means |
|---|---|
| 400, 422 | the request cannot be understood; ` + "`errors`" + ` lists every fault with its place |
| 401 | no token, or another one |
| 403, 421 | it came from another site, or was meant for another host |
| 404 | there is none of that name; ` + "`known`" + ` lists those there are |
| 405, 408, 413, 415 | wrong method (` + "`Allow`" + ` has the right ones), too slow, too big (1 MiB; a document 2 MiB), not JSON |
| 409 | refused: the state does not allow it; ` + "`refusal`" + ` says what it does allow |
| 410 | the place in the journal lies beyond its end: it is another journal |
| 429 | four requests of one agent wait for actions already |
| 500, 504 | it failed; it did not answer in time |
| 503 | the daemon is stopping, or 2,000 streams are open, or 1,000 requests wait for actions |

## Streams

Streams are server-sent events. A comment keeps a silent line alive every 15 seconds. Whoever comes
back with the last ` + "`id`" + ` in ` + "`Last-Event-ID`" + ` misses nothing and is told nothing twice. The daemon never
waits for a watcher: one that falls more than 4,096 changes behind is told ` + "`bye`" + ` and comes back.

` + "```" + `
curl -N -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:7466/api/v1/events?tail=10"
` + "```" + `

All text in answers may come from agents. Show it as text.

` + referenceMember + referenceCrew

// referenceMember is played by TestForeignAgentByTheBook as it stands here.
const referenceMember = `## An agent of your own in a channel

An agent that Fairlead does not start takes part in channels by requests. In ` + "`fairlead.yaml`" + ` it is one
with ` + "`loop: foreign`" + `, and stands in a channel:

` + "```" + `yaml
agents:
  scout: {description: Looks around, loop: foreign}
channels:
  reviews: {agents: [scout]}
` + "```" + `

It says that it is there, and from then on that it lives, every ten seconds, unless it asks for something
in its own name anyway; after three of these missed it is OFFLINE and its turn is over.

` + "```" + `
ask() { curl -s -H "Authorization: Bearer $TOKEN" -H "Content-Type: application/json" "$@"; }
API=http://127.0.0.1:7466/api/v1

ask -X POST $API/agents/scout/ready
{"heartbeat_ms":10000,"missed_max":3}
ask -X POST $API/agents/scout/heartbeat
{"heartbeat_ms":10000}
` + "```" + `

A person says something, and the agent, which waits for what it is to do, has the turn. ` + "`text`" + ` is all
that it is to be told, ready for a model. When the model has it, the action is done, and is in the list
no more; an agent that crashes before that finds it there again, under the same ` + "`key`" + `.

` + "```" + `
ask -X POST $API/channels/reviews/messages -d '{"text":"What do you see?"}'
{"message_id":"reviews/1"}
ask "$API/agents/scout/actions?wait=30s"
{"actions":[{"key":"tell_turn/reviews/scout/1","do":"tell_turn","channel":"reviews","turn":1,"text":"Channel reviews, turn 1: it is your turn…"}]}
ask -X POST $API/agents/scout/actions/done -d '{"key":"tell_turn/reviews/scout/1"}'
ask -X POST $API/channels/reviews/said -d '{"agent":"scout","turn":1,"text":"A fault in main.go.","complete":true}'
` + "```" + `

Every act names its turn. What is said under a number that is over is kept as late and moves nothing.
In its next turn the agent waits for something, and the channel with it, then goes on:

` + "```" + `
ask -X POST $API/channels/reviews/messages -d '{"text":"Can you mend it?","mode":"queue"}'
{"message_id":"reviews/3"}
ask "$API/agents/scout/actions?wait=30s"
{"actions":[{"key":"tell_turn/reviews/scout/2","turn":2}]}
ask -X POST $API/agents/scout/actions/done -d '{"key":"tell_turn/reviews/scout/2"}'
ask -X POST $API/channels/reviews/wait -d '{"agent":"scout","turn":2,"why":"the tests run"}'
ask $API/channels/reviews
{"holder":"scout","state":"WAITING","why":"the tests run"}
ask -X POST $API/channels/reviews/go-on -d '{"agent":"scout","turn":2}'
ask -X POST $API/channels/reviews/said -d '{"agent":"scout","turn":2,"text":"It is mended.","complete":true}'
ask $API/channels/reviews
{"holder":"","state":"PARKED","messages":4}
ask -X POST $API/agents/scout/leave
` + "```" + `
`

// referenceCrew is played by TestTeamByTheBook as it stands here.
const referenceCrew = `
## A team that sleeps and wakes

A lead answers for a team: what it reports of the others counts, and nothing else does. In ` + "`fairlead.yaml`" + `
it is an agent that can be told things while it runs:

` + "```" + `yaml
agents:
  julian: {description: Leads the team, driver: script, script: julian.script.yaml}
team: {lead: julian, size: 2}
` + "```" + `

A summon makes a placeholder for each seat, and has the lead told. Whoever follows
` + "`/events?after=HEAD`" + ` sees them hatch: changes of machine ` + "`presence`" + `.

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

When the lead's session ends, everybody sleeps. Who is woken gets soul and transcript back, by way of
the lead; that somebody is alive stands there only when the lead has said so.

` + "```" + `
ask -X POST $API/crew/sleep
ask $API/crew
{"button":"WAKE","lead":{"session":"","state":"asleep"},"agents":[{"name":"Lyra","status":"sleeping"},{"name":"Kael","status":"sleeping"}]}
ask -X POST $API/crew/wake -d '{"agents":["Lyra"]}'
ask $API/crew
{"button":"WAKE","in_progress":"","agents":[{"name":"Lyra","status":"alive"},{"name":"Kael","status":"sleeping"}]}
` + "```" + `

A document from another device is taken in for a seat that is free. ` + "`--data-binary @agent-9.json`" + ` sends a file.

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
	text, err := OpenAPI()
	if err != nil {
		t.Fatal(err)
	}
	var doc openAPIDoc
	if err := json.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestReference keeps doc/api.md what the routes are. Renew with UPDATE=1.
func TestReference(t *testing.T) {
	doc := readOpenAPI(t)
	var out bytes.Buffer
	out.WriteString(referenceHead)
	out.WriteString("\n## Routes\n\nAll below `" + api.Base + "`.\n\n| | | |\n|---|---|---|\n")
	for _, rt := range table() {
		fmt.Fprintf(&out, "| `%s` | `%s` | %s |\n", rt.Method, rt.Path, rt.Summary)
	}
	for _, rt := range table() {
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
			if body.Ref == "" { // somebody else's shape
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
	out.WriteString("\n## Shapes\n\nFields may be added; none is renamed.\n")
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

// words is the type of a value, in short.
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

// body describes what goes with a request; one that takes no words is not worth any.
func (d *openAPIDoc) body(out *bytes.Buffer, s *schemaDoc, required bool) {
	switch {
	case len(s.Properties) == 0:
		return
	case required:
		out.WriteString("\nBody:\n\n")
	default:
		out.WriteString("\nBody, may be left out:\n\n")
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

// The document names what the server has, under names that nobody has to change.
func TestOpenAPI(t *testing.T) {
	doc := readOpenAPI(t)
	if doc.OpenAPI != "3.1.0" {
		t.Errorf("it is OpenAPI %s", doc.OpenAPI)
	}
	n := 0
	for _, operations := range doc.Paths {
		n += len(operations)
	}
	if n != len(table()) {
		t.Errorf("%d operations, %d routes", n, len(table()))
	}
	ids := map[string]bool{}
	for _, rt := range table() {
		op, ok := doc.Paths[rt.Path][strings.ToLower(rt.Method)]
		if !ok || op.OperationID != rt.ID || op.Responses["default"].Content[api.ProblemType].Schema.name() != "Problem" {
			t.Errorf("%s %s is not described as it is: %+v", rt.Method, rt.Path, op)
		}
		if ids[rt.ID] || !regexp.MustCompile(`^[a-z]+(-[a-z]+)+$`).MatchString(rt.ID) {
			t.Errorf("the id %s is taken, or no verb-thing", rt.ID)
		}
		ids[rt.ID] = true
	}
	for name, fields := range explained {
		for field, words := range fields {
			if s := doc.Components.Schemas[name]; s == nil || s.Properties[field] == nil || s.Properties[field].Description != words {
				t.Errorf("%s.%s is explained, and is not there", name, field)
			}
		}
	}
	for _, name := range []string{"Change", "Output", "Ended", "Bye", "Problem", "Refusal"} {
		if doc.Components.Schemas[name] == nil {
			t.Errorf("the shape %s is not described", name)
		}
	}
	s := serve(t)
	text, h := s.want(t, 200, "GET", api.Base+"/openapi.json", "")
	var served map[string]any
	if err := json.Unmarshal([]byte(text), &served); err != nil || h.Get("Content-Type") != "application/openapi+json" {
		t.Errorf("%v, %v", h, err)
	}
}
