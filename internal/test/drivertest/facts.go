package drivertest

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/process/driver"
)

// factTextMax is the longest text of a fact: a line of maximum length and a note about it.
const factTextMax = driver.LineBytesMax + 4096

// Facts reads everything from an offset on, and fails the test if a fact breaks the rules of package
// driver.
func Facts(t testing.TB, d driver.Driver, w driver.Wire, from int64) []driver.Fact {
	t.Helper()
	var facts []driver.Fact
	last := from
	for f, err := range d.Converse(driver.Agent{}, driver.Session{}, w).Facts(context.Background(), from) {
		if err != nil {
			t.Fatalf("facts from %d: %v", from, err)
		}
		if why := wrong(f); why != "" {
			t.Fatalf("fact %d at %d: %s: %s", len(facts), f.Offset, why, Render(f))
		}
		if f.Offset < last {
			t.Fatalf("fact %d: offset %d after %d", len(facts), f.Offset, last)
		}
		last = f.Offset
		facts = append(facts, f)
	}
	return facts
}

var kinds = []driver.FactKind{
	driver.Said, driver.Thought, driver.ToolCalled, driver.PermissionAsked,
	driver.UsageReported, driver.Listening, driver.Stopped, driver.Faulted,
	driver.PermissionAnswered, driver.PermissionWithdrawn, driver.ConversationNamed, driver.RateLimited, driver.ProviderAway,
	driver.TextRead,
}

var withID = []driver.FactKind{driver.PermissionAsked, driver.PermissionAnswered, driver.PermissionWithdrawn, driver.TextRead}

// wrong returns the rule of package driver that a fact breaks; empty: none.
func wrong(f driver.Fact) string {
	switch {
	case !slices.Contains(kinds, f.Kind):
		return "unknown kind"
	case !utf8.ValidString(f.Text + f.Tool + f.ID):
		return "text that is not UTF-8"
	case len(f.Text) > factTextMax:
		return fmt.Sprintf("%d bytes of text", len(f.Text))
	case strings.Contains(f.Text, "\n") && f.Kind == driver.Said && f.Raw == nil:
		return "a line ending within a line"
	case f.Raw != nil && (!json.Valid(f.Raw) || !utf8.Valid(f.Raw)):
		return "Raw is not JSON"
	case f.Usage.InputTokens < 0 || f.Usage.OutputTokens < 0 || f.Usage.CostUSD < 0:
		return "negative usage"
	case slices.Contains(withID, f.Kind) != (f.ID != ""):
		return "an id that is missing, or is set in another kind of fact"
	case (f.Kind == driver.Stopped) != (f.Stop != nil):
		return "a terminal event that is missing, or is set in another kind of fact"
	case f.Stop != nil && !utf8.ValidString(f.Stop.Reason+f.Stop.Detail):
		return "a terminal event with text that is not UTF-8"
	case (f.Kind == driver.ConversationNamed) != (f.Conversation != nil && f.Conversation.ID != ""):
		return "a conversation id that is missing, or is set in another kind of fact"
	case (f.Kind == driver.ProviderAway) != f.Provider.Known():
		return "a code of a provider that is missing, or is set in another kind of fact"
	case !f.Until.IsZero() && f.Kind != driver.RateLimited:
		return "an end of a rate limit in another kind of fact"
	case f.Kind == driver.Listening && (f.Part || f.Tool != ""):
		return "an event without duration must not have speech"
	case f.Input < 0 || f.Input > 0 && f.Kind != driver.Listening:
		return "an amount of input in another kind of fact"
	}
	return ""
}

// Check verifies what must hold for any output: no fact breaks a rule, and the facts are the same
// for pieces of the given size and from every offset. Fuzz tests call it.
func Check(t testing.TB, d driver.Driver, output []byte, piece int) {
	t.Helper()
	whole := Facts(t, d, &Recording{Bytes: output}, 0)
	if n := len(whole); n > 0 && whole[n-1].Offset > int64(len(output)) {
		t.Fatalf("offset %d of %d bytes", whole[n-1].Offset, len(output))
	}
	same(t, fmt.Sprintf("in pieces of %d", piece), whole, Facts(t, d, &Recording{Bytes: output, Sizes: []int{piece}}, 0))
	resume(t, d, output, whole)
}

// resume reads again from the offset of every fact and expects the same facts from there on. If
// several facts have the same offset, the first one is meant, which may be the end of one line or
// the beginning of the next: earlier facts of a line have the offset of its beginning and are
// repeated so that none is lost.
func resume(t testing.TB, d driver.Driver, output []byte, whole []driver.Fact) {
	t.Helper()
	if len(whole) == 0 {
		return
	}
	last := whole[len(whole)-1].Offset
	same(t, "from the end", nil, Facts(t, d, &Recording{Bytes: output}, last))
	step := max(len(whole)/resumesMax, 1)
	for i := 0; i < len(whole); i += step {
		first := slices.IndexFunc(whole, func(f driver.Fact) bool { return f.Offset == whole[i].Offset })
		rest := Facts(t, d, &Recording{Bytes: output}, whole[i].Offset)
		if len(rest) == len(whole)-first {
			first-- // it was the beginning of a line
		}
		same(t, fmt.Sprintf("from %d", whole[i].Offset), whole[first+1:], rest)
	}
}

func same(t testing.TB, how string, want, got []driver.Fact) {
	t.Helper()
	for i := range max(len(want), len(got)) {
		w, g := "(none)", "(none)"
		if i < len(want) {
			w = Render(want[i])
		}
		if i < len(got) {
			g = Render(got[i])
		}
		if w != g {
			t.Fatalf("read %s, fact %d differs:\n got %s\nwant %s", how, i, shorten(g), shorten(w))
		}
	}
}

// Render formats a fact in one line, for golden files.
func Render(f driver.Fact) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %s", f.Offset, f.Kind)
	if f.Tool != "" {
		fmt.Fprintf(&b, " tool=%q", f.Tool)
	}
	if f.Kind == driver.PermissionAsked {
		fmt.Fprintf(&b, " ask=%q", f.Ask.ID)
		for _, o := range f.Ask.Options {
			fmt.Fprintf(&b, " %s(%s)", o.ID, o.Kind)
		}
	}
	if len(f.Ask.Paths) > 0 {
		fmt.Fprintf(&b, " paths=%q", f.Ask.Paths)
	}
	if f.Kind == driver.PermissionAnswered || f.Kind == driver.PermissionWithdrawn {
		fmt.Fprintf(&b, " ask=%q", f.ID)
	}
	if f.Kind == driver.TextRead {
		fmt.Fprintf(&b, " id=%q", f.ID)
	}
	if f.Kind == driver.ConversationNamed {
		fmt.Fprintf(&b, " conversation=%+v", *f.Conversation)
	}
	if f.Provider != "" {
		fmt.Fprintf(&b, " provider=%s", f.Provider)
	}
	if !f.Until.IsZero() {
		fmt.Fprintf(&b, " until=%s", f.Until.UTC().Format(time.RFC3339))
	}
	if f.Kind == driver.UsageReported {
		fmt.Fprintf(&b, " in=%d out=%d cost=%v", f.Usage.InputTokens, f.Usage.OutputTokens, f.Usage.CostUSD)
	}
	if f.Input != 0 {
		fmt.Fprintf(&b, " input=%d", f.Input)
	}
	if f.Kind == driver.Stopped {
		fmt.Fprintf(&b, " ok=%t reason=%q detail=%q", f.Stop.OK, f.Stop.Reason, f.Stop.Detail)
		if f.Stop.ContextPercent != 0 {
			fmt.Fprintf(&b, " context=%d%%", f.Stop.ContextPercent)
		}
		if f.Stop.Alone != "" {
			fmt.Fprintf(&b, " alone=%q", f.Stop.Alone)
		}
	}
	fmt.Fprintf(&b, " %q", f.Text)
	if f.Part {
		b.WriteString(" …")
	}
	if f.Kind == driver.Faulted && f.Raw != nil {
		fmt.Fprintf(&b, " raw=%s", f.Raw)
	}
	return b.String()
}

func shorten(s string) string {
	if len(s) > 400 {
		return s[:300] + " … " + s[len(s)-60:]
	}
	return s
}
