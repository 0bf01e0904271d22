package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

const referencePath = "../doc/config.md"

const referenceHead = `<!-- Code generated from config/keys.go by UPDATE=1 go test ./config; DO NOT EDIT. -->

# fairlead.yaml

This file at the root of the repository describes the team. ` + "`fairlead init`" + ` writes a
first one. Fairlead reports all faults in the file at once, each with its line and column:

` + "```" + `
fairlead.yaml:12:13: agents.coder.driver: cannot be "exce" (did you mean exec?); it is one of script, exec, acp, claude, codex
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

// TestReference generates doc/config.md from the rules and the comments of the fields. Renew it with UPDATE=1.
func TestReference(t *testing.T) {
	r := &reference{described: descriptions(t)}
	r.WriteString(referenceHead)
	r.section("The file", fileDescription, "", configRule())
	golden.Check(t, referencePath, r.String())
}

type reference struct {
	bytes.Buffer
	described map[string]string
}

// section writes a table of a mapping's keys, then the sections of the keys that are mappings themselves.
func (r *reference) section(title, description, prefix string, of *rule) {
	fmt.Fprintf(r, "\n## %s\n\n", title)
	if description != "" {
		fmt.Fprintf(r, "%s\n\n", description)
	}
	r.WriteString("| key | value | default | meaning |\n|---|---|---|---|\n")
	for _, f := range of.fields {
		key, standard := f.key, ""
		if f.tag.Get("required") != "" {
			key = "**" + key + "**"
		}
		if f.standard != nil {
			standard = "`" + f.standard.Text + "`"
		}
		fmt.Fprintf(r, "| %s | %s | %s | %s |\n", key, valueOf(f), standard, r.described[of.typ.Name()+"."+of.typ.Field(f.index).Name])
	}
	for _, f := range of.fields {
		path := prefix + f.key
		switch {
		case len(f.fields) > 0:
			r.section("`"+path+"`", "", path+".", f)
		case f.item != nil && len(f.item.fields) > 0:
			r.section("`"+path+".NAME`", "", path+".NAME.", f.item)
		}
	}
}

// valueOf says what a key's value is.
func valueOf(r *rule) string {
	switch format := r.tag.Get("format"); {
	case r.item != nil && r.item.name != nil:
		return "a mapping"
	case r.item != nil && r.tag.Get("alone") != "":
		return "a word, or a list"
	case r.item != nil && formatWords[format] != "":
		return "a list of " + formatWords[format] + "s"
	case r.item != nil:
		return "a list"
	case len(r.words) > 0:
		return "`" + strings.Join(r.words, "`, `") + "`"
	case r.isDuration():
		return "a duration"
	case r.word != nil:
		return "a text, or a mapping"
	case formatWords[format] != "":
		return "a " + formatWords[format]
	case r.kinds[0] == file.YAMLText && r.typ.Kind() == reflect.Int64:
		return "a size"
	case r.kinds[0] == file.YAMLNumber && r.least == r.most:
		return "`" + r.least.text + "`"
	case r.kinds[0] == file.YAMLNumber && r.most.value < 1e5:
		return r.least.text + " to " + r.most.text
	case r.kinds[0] == file.YAMLObject:
		return "a mapping"
	}
	return r.wanted()
}

var formatWords = map[string]string{
	"name": "name", "file": "path", "workspace": "path", "place": "path", "inside": "path", "secret file": "path",
	"writes": "pattern", "executes": "pattern", "calls": "pattern",
}
