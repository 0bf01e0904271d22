package dispatch

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fairlead-dev/fairlead/work/sessions"

	"github.com/fairlead-dev/fairlead/core/control"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/marker"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
)

const (
	resultBytesMax = dispatch.TextBytesMax - 512 // room for the words that say what was left out
	lastWordsMax   = 4 << 10                     // of what an agent said that has failed
)

func wentWell(end team.DispatchSessionEnd) bool { return end.Outcome == control.OK }

// resultOf is what came of a work, in words: what its session said, or why it came to nothing.
func (c *Controller) resultOf(ctx context.Context, end team.DispatchSessionEnd) (string, error) {
	if end.Session == "" {
		return end.Why, nil
	}
	said, err := c.saidIn(ctx, end.Agent, end.Session)
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		said = "[what it said cannot be read any more: " + err.Error() + "]"
	}
	if wentWell(end) {
		return said, nil
	}
	why := cmp.Or(end.Why, "it failed, and did not say why")
	if said == "" {
		return why, nil
	}
	return why + "\n\nIt had said:\n" + lastPart(said, lastWordsMax), nil
}

// saidIn is all that an agent said in a session, without what its tools printed and without markers.
func (c *Controller) saidIn(ctx context.Context, agent, session string) (string, error) {
	info, err := c.sessions.Session(ctx, session)
	if err != nil {
		return "", err
	}
	d, ok := c.opts.Drivers[info.Driver]
	if !ok {
		return "", fmt.Errorf("this build of fairlead has no driver %q", info.Driver)
	}
	var said tail
	scan := marker.Scanner{Only: DelegateMarkers}
	take := func(pieces []marker.Piece) {
		for _, piece := range pieces {
			if piece.Marker == nil {
				said.add(piece.Text)
			}
		}
	}
	conv := d.Converse(driver.Agent{Name: agent}, driver.Session{ID: session}, sessions.ReadOnly{E: c.sessions, Session: session})
	for fact, err := range conv.Facts(ctx, 0) {
		switch {
		case err != nil:
			return said.text(), err
		case fact.Kind == driver.UsageReported, fact.Kind == driver.Faulted:
		case fact.Kind != driver.Said, fact.Tool != "":
			take(scan.Flush())
		case fact.Part:
			take(scan.Write([]byte(fact.Text)))
		default:
			take(scan.Write([]byte(fact.Text + "\n")))
		}
	}
	take(scan.Flush())
	return said.text(), nil
}

// tail keeps the end of a long text.
type tail struct {
	bytes []byte
	cut   int64
}

func (t *tail) add(text []byte) {
	t.bytes = append(t.bytes, text...)
	if over := len(t.bytes) - resultBytesMax; over > resultBytesMax { // now and then, not at every word
		t.drop(over)
	}
}

func (t *tail) drop(n int) {
	for n < len(t.bytes) && !utf8.RuneStart(t.bytes[n]) {
		n++
	}
	t.cut += int64(n)
	t.bytes = slices.Delete(t.bytes, 0, n)
}

func (t *tail) text() string {
	if over := len(t.bytes) - resultBytesMax; over > 0 {
		t.drop(over)
	}
	text := strings.TrimSpace(strings.ToValidUTF8(string(t.bytes), "\uFFFD"))
	if len(text) > resultBytesMax { // what was no UTF-8 got longer
		text = lastPart(text, resultBytesMax)
	}
	if t.cut > 0 {
		text = fmt.Sprintf("[%d bytes before this are in the output of the session]\n", t.cut) + text
	}
	return text
}

// lastPart is the end of a text, at a whole character.
func lastPart(text string, most int) string {
	if len(text) <= most {
		return text
	}
	end := text[len(text)-most:]
	return "…" + end[clip.Torn([]byte(end)):]
}
