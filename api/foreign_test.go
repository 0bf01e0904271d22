package api

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/fairlead-dev/fairlead/engine"
	"github.com/fairlead-dev/fairlead/journal/memory"
)

// The reference's example of a foreign agent in a channel, line by line, with a real engine:
// what is written there is asked, and what stands below it is in the answer.
func TestForeignAgentByTheBook(t *testing.T) {
	blocks := strings.Split(referenceMember, "```")
	var yaml string
	var lines []string
	for i := 1; i < len(blocks); i += 2 {
		if rest, is := strings.CutPrefix(blocks[i], "yaml\n"); is {
			yaml = "version: 1\n" + rest
			continue
		}
		lines = append(lines, strings.Split(blocks[i], "\n")...)
	}
	dir, _, stop := realOf(t, memory.New(), yaml)
	defer stop()
	c, err := Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	asked, said := 0, ""
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "ask "):
			asked++
			said = askAsWritten(t, c, line)
		case strings.HasPrefix(line, "{"):
			var want, got any
			if err := json.Unmarshal([]byte(line), &want); err != nil {
				t.Fatalf("%s: %v", line, err)
			}
			if err := json.Unmarshal([]byte(said), &got); err != nil {
				t.Fatalf("%s: %v", said, err)
			}
			if why := holds(got, want); why != "" {
				t.Fatalf("%s\nis answered, and not\n%s\n%s", said, line, why)
			}
		}
	}
	if asked != strings.Count(referenceMember, "\nask ") {
		t.Errorf("%d requests were made", asked)
	}
	page, err := c.ChannelEntries(t.Context(), "reviews", engine.EntryQuery{})
	var told []string
	for _, e := range page.Entries {
		if e.N > 0 {
			told = append(told, fmt.Sprintf("%d %s", e.N, e.Text))
		}
	}
	if want := "1 What do you see?|2 A fault in main.go.|3 Can you mend it?|4 It is mended."; err != nil || strings.Join(told, "|") != want {
		t.Errorf("%q, %v", told, err)
	}
}

// askAsWritten does what a line of the example does, and gives the answer.
func askAsWritten(t *testing.T, c *Client, line string) string {
	t.Helper()
	line, body, hasBody := strings.Cut(strings.TrimPrefix(line, "ask "), " -d '")
	method := http.MethodGet
	if rest, is := strings.CutPrefix(line, "-X POST "); is {
		line, method = rest, http.MethodPost
	}
	path := strings.TrimPrefix(strings.Trim(line, `"`), "$API")
	if hasBody != strings.HasSuffix(body, "'") || !strings.HasPrefix(path, "/") {
		t.Fatalf("this line cannot be read: %s", line)
	}
	req, err := http.NewRequestWithContext(t.Context(), method, "http://fairlead"+Base+path, strings.NewReader(strings.TrimSuffix(body, "'")))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode >= 300 {
		t.Fatalf("%s %s is answered with %s: %s %v", method, path, resp.Status, text, err)
	}
	return string(text)
}

// holds says what of want is not in got. A text that ends with an ellipsis is a beginning.
func holds(got, want any) string {
	switch want := want.(type) {
	case map[string]any:
		is, _ := got.(map[string]any)
		for name, value := range want {
			if why := holds(is[name], value); why != "" {
				return name + ": " + why
			}
		}
		return ""
	case []any:
		is, _ := got.([]any)
		if len(is) != len(want) {
			return fmt.Sprintf("has %d, want %d", len(is), len(want))
		}
		for i := range want {
			if why := holds(is[i], want[i]); why != "" {
				return fmt.Sprintf("%d: %s", i, why)
			}
		}
		return ""
	case string:
		begin, cut := strings.CutSuffix(want, "…")
		if is, _ := got.(string); cut && strings.HasPrefix(is, begin) {
			return ""
		}
	}
	if got != want {
		return fmt.Sprintf("is %v, want %v", got, want)
	}
	return ""
}
