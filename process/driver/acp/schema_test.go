package acp

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/fairlead-dev/fairlead/internal/test/drivertest"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// The protocol's own schema: schema/v1/schema.json of the npm package @agentclientprotocol/sdk 2.4.0
// (Apache-2.0, see testdata/schema/README.md).
const (
	schemaFile = "testdata/schema/schema.json"
	schemaSum  = "0d0b1ca83c4872e5473f68926a894c7a8203b59b118e2a79bfe43dd76fbcbc1a"
)

// TestSchema checks that all messages to real programs in recordings, and all messages of a
// session, match the protocol's schema.
func TestSchema(t *testing.T) {
	raw, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintf("%x", sha256.Sum256(raw)); got != schemaSum {
		t.Errorf("%s has the checksum %s; record its source and the checksum", schemaFile, got)
	}
	check := schemas(t, raw)
	files, err := filepath.Glob("testdata/dialogues/*.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		asked := make(map[string]string) // requests of the program: ID to method
		for _, line := range readLines(t, file) {
			var e drivertest.Entry
			if err := json.Unmarshal(line, &e); err != nil {
				t.Fatal(err)
			}
			m := decode(e.Msg)
			switch {
			case e.Dir == "recv" && m.kind == request:
				asked[string(m.id)] = m.method
			case e.Dir == "send":
				check(file, m, asked[string(m.id)])
			}
		}
	}

	// Cases that the recordings lack: resuming a conversation, both transports for the tools, and both
	// outcomes.
	bridge := []string{"/bin/fairlead", "mcp"}
	for _, c := range []struct {
		can string
		mcp driver.MCP
	}{
		{`"loadSession":true,"mcpCapabilities":{"http":true}`, driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: "x", Stdio: bridge}},
		{`"sessionCapabilities":{"resume":{}}`, driver.MCP{URL: "http://127.0.0.1:1/mcp", Token: "x", Stdio: bridge}},
		{`"loadSession":true`, driver.MCP{Token: "x", Stdio: bridge}},                     // on another host
		{`"loadSession":true,"mcpCapabilities":{"http":true}`, driver.MCP{Stdio: bridge}}, // in a view
		{`"sessionCapabilities":{"resume":{}}`, driver.MCP{Stdio: bridge[:1]}},
		{`"loadSession":true`, driver.MCP{}},
	} {
		s := newScene(t, driver.Work, "go")
		s.part.Resume, s.part.Mode = "s1", "default"
		s.part.MCP = c.mcp
		s.play(func(f *fake) {
			f.onMessage = func(line []byte) { check("a session", decode(line), "") }
			f.result(f.next(), `{"protocolVersion":1,"agentCapabilities":{`+c.can+`}}`)
			f.result(f.next(), `{"modes":{"currentModeId":"yolo","availableModes":[{"id":"default","name":"D"}]},`+
				`"configOptions":[{"id":"m","name":"M","category":"model","type":"select","currentValue":"a","options":[{"value":"a","name":"A"}]}]}`)
			f.result(f.next(), `{}`)
			f.result(f.next(), `{"stopReason":"end_turn","usage":{"inputTokens":1,"outputTokens":1}}`)
			f.next()
		})
		s.ended(true, "completed", "")
	}
	for _, option := range []string{"", "yes"} {
		b, err := json.Marshal(outcome(option))
		if err != nil {
			t.Fatal(err)
		}
		check("outcome", message{kind: response, result: b}, "session/request_permission")
	}
}

// schemas returns a validator for the driver's messages. of is the method that a response answers.
func schemas(t *testing.T, raw []byte) func(where string, m message, of string) {
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("acp.json", doc); err != nil {
		t.Fatal(err)
	}
	// Schemas of the messages that a client sends, by method. The file has one each for requests,
	// notifications and responses, and says which side handles them.
	requests, responses := make(map[string]*jsonschema.Schema), make(map[string]*jsonschema.Schema)
	for name, def := range objectOf(objectOf(raw)["$defs"]) {
		of := objectOf(def)
		method, side := of.text("x-method"), of.text("x-side")
		if method == "" {
			continue
		}
		compiled, err := c.Compile("acp.json#/$defs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		switch response := bytes.HasSuffix([]byte(name), []byte("Response")); {
		case response && side == "client":
			responses[method] = compiled
		case !response && side == "agent":
			requests[method] = compiled
		}
	}
	return func(where string, m message, of string) {
		t.Helper()
		schema, body := requests[m.method], m.params
		if m.kind == response {
			if m.err != nil {
				return // errors have no schema besides JSON-RPC's
			}
			schema, body = responses[of], m.result
		}
		if schema == nil {
			t.Errorf("%s: the schema has no %s%s: %s", where, m.method, of, m.raw)
			return
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s: %s does not match the schema: %v", where, body, err)
		}
	}
}
