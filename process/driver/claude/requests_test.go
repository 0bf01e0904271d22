package claude

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// TestSameRequestID checks a program that reuses a question's ID. The two questions get different
// names. An answer to one does not answer the other, and each answer goes back with the program's
// ID.
func TestSameRequestID(t *testing.T) {
	var out bytes.Buffer
	h := newHearing(speech.NewWriter(&out), programs[0], adapter.Part{Dir: "/work/repo"})
	wants := func(command string) (id string) {
		t.Helper()
		out.Reset()
		h.line(json.RawMessage(`{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"`+command+`"}}}`), "p")
		for line := range strings.Lines(out.String()) {
			var e driver.Fact
			if json.Unmarshal([]byte(line), &e) == nil && e.Kind == "permission_asked" {
				id = e.ID
			}
		}
		return id
	}
	first := wants("ls")
	if again := wants("ls"); first != "r1" || again != "" {
		t.Fatalf("asked %q, then %q while the first is open", first, again)
	}
	if got := fmt.Sprint(h.answer(speech.Order{ID: first, Option: optionDeny})); !strings.Contains(got, "request_id:r1") {
		t.Errorf("answered %s", got)
	}
	second := wants("rm x")
	if second == "" || second == first {
		t.Fatalf("the second has the name %q", second)
	}
	if got := h.answer(speech.Order{ID: first, Option: optionAllow}); got != nil {
		t.Errorf("an answer to the first answers the second: %v", got)
	}
	if got := fmt.Sprint(h.answer(speech.Order{ID: second, Option: optionAllow})); !strings.Contains(got, "request_id:r1") {
		t.Errorf("answered %s", got)
	}
	third := wants("ls")
	out.Reset()
	sent := h.line(json.RawMessage(`{"type":"control_request","request_id":"r1","request":{"subtype":"can_use_tool","tool_name":"Bash","input":{"command":"rm x"}}}`), "p").send
	if len(sent) != 1 || !strings.Contains(fmt.Sprint(sent), "deny") ||
		!strings.Contains(out.String(), `"permission_withdrawn","id":"`+third+`"`) && !strings.Contains(out.String(), third) {
		t.Errorf("another question under the name of an open one: %v, %s", sent, out.String())
	}
	if got := h.answer(speech.Order{ID: third, Option: optionAllow}); got != nil {
		t.Errorf("it was answered: %v", got)
	}
}
