package speech_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/speech"
)

// TestResult checks that a result is one event of limited size, that it does not count as text of
// the agent, and that omitted text is mentioned.
func TestResult(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"nothing":    {" \n\n", ""},
		"lines":      {"a\r\n\tb\n", "a\n\tb"},
		"controls":   {"\x1b[31mred\x00\x7f \u202e\xff", "␛[31mred␀␡ <U+202E><FF>"},
		"many lines": {strings.Repeat("x\n", 50), strings.Repeat("x\n", 40) + "… [19 more bytes are not shown]"},
		"many bytes": {strings.Repeat("ä", 3000), strings.Repeat("ä", 2048) + "\n… [1904 more bytes are not shown]"},
	} {
		var out bytes.Buffer
		speech.NewWriter(&out).Result("Bash", c.text)
		var e driver.Fact
		if out.Len() > 0 && json.Unmarshal(out.Bytes(), &e) != nil {
			t.Fatalf("%s: %s", name, out.String())
		}
		if e.Text != c.want || c.want != "" && (e.Kind != driver.Said || e.Tool != "Bash") {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestDiff(t *testing.T) {
	for _, c := range []struct{ old, now, want string }{
		{"", "x\ny\n", "f\n+ x\n+ y"},
		{"a\nb\nc\n", "a\nB\nc\n", "f\n- b\n+ B"},
		{"a\nb\n", "a\n", "f\n- b"},
		{"a", "a\n", "f"},
	} {
		if got := speech.Diff("f", c.old, c.now); got != c.want {
			t.Errorf("%q to %q: %q, want %q", c.old, c.now, got, c.want)
		}
	}
}
