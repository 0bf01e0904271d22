package config

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

const referencePath = "../doc/config.md"

const referenceHead = `<!-- Code generated from config/fairlead.schema.json by UPDATE=1 go test ./config; DO NOT EDIT. -->

# fairlead.yaml

This file at the root of the repository describes the team. ` + "`fairlead init`" + ` writes a
first one. Fairlead reports all faults in the file at once, each with its line and column:

` + "```" + `
fairlead.yaml:12:13: agents.coder.driver: unknown driver "exce" (did you mean exec?); there are script, exec, acp, claude, codex
` + "```" + `

A name is ` + nameRule + `.
A duration is a number and a unit: ` + "`90s`, `10m`, `2h`" + `. Relative paths start from the folder of the file.

` + "`${NAME}`" + ` in an environment or in ` + "`notify`" + ` refers to a variable of Fairlead's environment. It is
resolved when a process starts and never stored. In other settings a dollar sign has no special meaning.
Inside ` + "`{ }`" + `, other programs need quotes around it: ` + "`env: {API_KEY: \"${API_KEY}\"}`" + `.

An agent's process does not get Fairlead's whole environment, because that may hold keys of other agents. It gets
` + "`PATH`, `HOME`, `USER`, `LOGNAME`, `SHELL`, `LANG`, `LANGUAGE`, `LC_*`, `TERM`, `COLORTERM`, `TZ`, `TMPDIR` and `XDG_*`" + `; the proxy
variables (` + "`HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY`, `NO_PROXY`" + `, also in small letters); those for certificates
(` + "`SSL_CERT_FILE`, `SSL_CERT_DIR`, `NIX_SSL_CERT_FILE`, `NODE_EXTRA_CA_CERTS`, `REQUESTS_CA_BUNDLE`, `CURL_CA_BUNDLE`, `GIT_SSL_CAINFO`" + `);
and what its ` + "`env`" + ` names. Claude Code also gets ` + "`ANTHROPIC_*` and `CLAUDE_*`" + `, with ` + "`CLAUDE_CODE_USE_BEDROCK`" +
	` also
` + "`AWS_*`" + `, with ` + "`CLAUDE_CODE_USE_VERTEX`" + ` also ` + "`GOOGLE_*`" + `; codex gets ` + "`OPENAI_*` and `CODEX_*`" +
	`. Commands of workflow
steps get the usual variables and those of ` + "`--env`" + `. ` + "`fairlead why AGENT`" +
	` shows what an agent gets. Another variable needs a
line, as in ` + "`SSH_AUTH_SOCK: ${SSH_AUTH_SOCK}`" + `; if Fairlead's environment lacks it, the agent is not started.
A session on another host gets all these from the environment of the daemon there. Of this machine's environment it gets no value, also
none of ` + "`--env`" + `; what is written in this file goes to each host.

The file is UTF-8 and at most 1 MiB. Anchors, aliases and ` + "`<<`" + ` are followed. The JSON Schema for
editors is ` + "[fairlead.schema.json](../config/fairlead.schema.json)" + `.
`

type schemaNode struct {
	Description string
	Ref         string `json:"$ref"`
	Type        any
	Enum        []any
	Const       any
	Default     any
	Minimum     any
	Maximum     any
	Required    []string
	Properties  json.RawMessage
	Additional  json.RawMessage `json:"additionalProperties"`
	Items       *schemaNode
	Defs        map[string]*schemaNode `json:"$defs"`
}

// TestReference generates doc/config.md from the schema. Renew it with UPDATE=1.
func TestReference(t *testing.T) {
	var root schemaNode
	if err := json.Unmarshal(schemaJSON, &root); err != nil {
		t.Fatal(err)
	}
	r := &reference{defs: root.Defs}
	r.WriteString(referenceHead)
	r.section("The file", "", &root)
	golden.Check(t, referencePath, r.String())
}

type reference struct {
	bytes.Buffer
	defs map[string]*schemaNode
}

// section writes a table of an object's keys, then the sections of the keys that are objects themselves.
func (r *reference) section(title, prefix string, n *schemaNode) {
	fmt.Fprintf(r, "\n## %s\n\n", title)
	if n.Description != "" {
		fmt.Fprintf(r, "%s\n\n", n.Description)
	}
	r.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	type deeper struct {
		title, prefix string
		node          *schemaNode
	}
	var below []deeper
	for _, key := range orderedKeys(n.Properties) {
		var p *schemaNode
		var all map[string]*schemaNode
		if err := json.Unmarshal(n.Properties, &all); err != nil {
			panic(err)
		}
		p = all[key]
		shape, path := r.resolve(p), prefix+key
		if slices.Contains(n.Required, key) {
			key = "**" + key + "**"
		}
		fmt.Fprintf(r, "| %s | %s | %s | %s |\n", key, r.value(p), defaultWord(p, shape), p.Description)
		switch entry := r.entry(shape); {
		case len(shape.Properties) > 0:
			below = append(below, deeper{path, path + ".", shape})
		case entry != nil && len(entry.Properties) > 0:
			below = append(below, deeper{path + ".NAME", path + ".NAME.", entry})
		}
	}
	for _, d := range below {
		d.node = &schemaNode{Properties: d.node.Properties, Required: d.node.Required}
		r.section("`"+d.title+"`", d.prefix, d.node)
	}
}

func (r *reference) resolve(n *schemaNode) *schemaNode {
	for n.Ref != "" {
		n = r.defs[strings.TrimPrefix(n.Ref, "#/$defs/")]
	}
	return n
}

// entry is the schema of a mapping's values where the mapping may have any key.
func (r *reference) entry(n *schemaNode) *schemaNode {
	var e schemaNode
	if len(n.Additional) == 0 || json.Unmarshal(n.Additional, &e) != nil {
		return nil
	}
	return r.resolve(&e)
}

func (r *reference) value(n *schemaNode) string {
	if words := map[string]string{
		"#/$defs/duration": "a duration", "#/$defs/name": "a name", "#/$defs/path": "a path", "#/$defs/patterns": "a list of patterns",
	}[n.Ref]; words != "" {
		return words
	}
	n = r.resolve(n)
	switch {
	case len(n.Enum) > 0:
		words := make([]string, len(n.Enum))
		for i, e := range n.Enum {
			words[i] = fmt.Sprintf("`%v`", e)
		}
		return strings.Join(words, ", ")
	case n.Const != nil:
		return fmt.Sprintf("`%v`", n.Const)
	case n.Minimum != nil && n.Maximum != nil && n.Maximum.(float64) < 1e5:
		return fmt.Sprintf("%v to %v", n.Minimum, n.Maximum)
	}
	types := fmt.Sprint(n.Type)
	switch {
	case strings.Contains(types, "object") && strings.Contains(types, "string"):
		return "a text, or a mapping"
	case strings.Contains(types, "object"):
		return "a mapping"
	case strings.Contains(types, "array"):
		if n.Items != nil && n.Items.Ref == "#/$defs/path" {
			return "a list of paths"
		}
		return "a list"
	}
	return kindWords[types]
}

func defaultWord(n, shape *schemaNode) string {
	d := n.Default
	if d == nil {
		d = shape.Default
	}
	if d == nil {
		return ""
	}
	return fmt.Sprintf("`%v`", d)
}

// orderedKeys returns an object's keys in the order in which they are written.
func orderedKeys(object json.RawMessage) []string {
	d := json.NewDecoder(bytes.NewReader(object))
	var keys []string
	_, _ = d.Token()
	for d.More() {
		key, _ := d.Token()
		keys = append(keys, key.(string))
		var skipped json.RawMessage
		_ = d.Decode(&skipped)
	}
	return keys
}
