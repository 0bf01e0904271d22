package claudehook

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/internal/encode"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
)

// The bytes that are written into settings files of several layouts, and what removal leaves of files that a user or a
// program has changed since.
func TestSettingsKeepTheirBytes(t *testing.T) {
	var out bytes.Buffer
	show := func(what string, text []byte, err error) {
		shown := strconv.Quote(string(text))
		for _, name := range Names() {
			command := strconv.Quote(string(encode.JSON(program.command(name))))
			shown = strings.ReplaceAll(shown, command[1:len(command)-1], "<"+name+">")
		}
		fmt.Fprintf(&out, "== %s\n%s %v\n", what, shown, err)
	}
	hook := `{"type": "command", "command": "x # fairlead install claude"}`
	for _, text := range append([]string{
		"{\n  \"a\": 1\n  , \"b\": 2\n}\n",
		"{\n  \"hooks\": {\n    \"Stop\" : [ 1 , {\"hooks\": [" + hook + "]} , 2 ]\n  , \"PreToolUse\": [\n " + hook + " ]}}",
		`{ "hooks" : { "Stop" : [ {"hooks" : [ ` + hook + ` , {"command": "mine"} , ` + hook + ` ] } , {"hooks":[` + hook +
			`],"mine":1} ] } , "z" : 0 }`,
		"{\"hooks\":{\n\n\"Stop\":[\r\n\t{\"hooks\":[" + hook + "]}\r\n\r\n]},\"hooked\":null}",
		`{"hooks":{"Stop":[{"hooks":[` + hook + `]}]}}`,
	}, settingsCases...) {
		with, err := AddHooks([]byte(text), program)
		show("add to "+text, with, err)
		left, err := RemoveHooks([]byte(text))
		show("remove from "+text, left, err)
	}
	with, err := AddHooks(nil, program)
	show("a new file", with, err)
	golden.Check(t, "testdata/settings.golden", out.String())
}
