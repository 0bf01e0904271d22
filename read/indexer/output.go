package indexer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/read/search"
)

// output reads the output of a session up to an offset (-1: all of it), which it had reached at a
// time. over: the session has ended, so a line without an end is whole. done is false if the batch is
// full before.
func (b *batch) output(ctx context.Context, id string, at time.Time, until int64, over bool) (done bool, err error) {
	s, err := b.source(ctx, id)
	if err != nil || s == nil || !s.Open {
		return true, err
	}
	size, err := b.x.opts.Size(id)
	switch {
	case errors.Is(err, fs.ErrNotExist): // its process has not started, or its folder was removed
		size = s.Read
	case err != nil:
		return false, err
	}
	if until < 0 || until > size {
		until = size
	}
	from, began := s.Read, s.Time
	for s.Read < until {
		if b.full() {
			return false, nil
		}
		to, err := b.chunk(ctx, s, until, over, func(offset int64) time.Time { return between(began, at, offset-from, until-from) })
		if err != nil {
			return false, err
		}
		if to == s.Read {
			break // the last line goes on
		}
		s.Read = to
		b.sources[id] = s
	}
	if until > from || over {
		s.Time = at
		s.Open = !over
		b.sources[id] = s
	}
	return true, nil
}

// between is a time between two, in proportion to part of whole.
func between(from, to time.Time, part, whole int64) time.Time {
	if from.IsZero() || !from.Before(to) || whole <= 0 {
		return to
	}
	return from.Add(time.Duration(float64(to.Sub(from)) * float64(part) / float64(whole)))
}

// chunk indexes some output of a source, whole lines only, and returns the offset after it.
func (b *batch) chunk(ctx context.Context, s *search.Source, until int64, over bool, when func(int64) time.Time) (int64, error) {
	d := b.x.opts.Drivers[s.Driver]
	if d == nil {
		return until, nil // a driver that this version does not have: its output means nothing here
	}
	text, err := b.read(ctx, s.ID, s.Read, min(readMax, until-s.Read))
	if err != nil {
		return 0, err
	}
	whole := over && s.Read+int64(len(text)) == until
	if end := bytes.LastIndexByte(text, '\n') + 1; !whole && (end > 0 || len(text) < readMax) {
		text = text[:end]
	}
	if len(text) == 0 {
		return s.Read, nil
	}
	conv := d.Converse(driver.Agent{Name: s.Agent}, driver.Session{ID: s.ID}, driver.Recorded{Text: text, From: s.Read})
	g := group{b: b, source: s, when: when}
	at, before := s.Read, b.bytes
	for fact, err := range conv.Facts(ctx, s.Read) {
		if err != nil {
			return 0, fmt.Errorf("read the output of %s: %w", s.ID, err)
		}
		g.take(at, &fact)
		at = max(at, fact.Offset)
	}
	g.flush()
	b.bytes = max(b.bytes, before+len(text)) // text that means nothing costs time too
	return s.Read + int64(len(text)), nil
}

// read reads at most most bytes of output.
func (b *batch) read(ctx context.Context, id string, from, most int64) ([]byte, error) {
	out, err := b.x.opts.Output(ctx, id, from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer out.Close()
	text, err := io.ReadAll(io.LimitReader(out, most))
	if err != nil {
		return nil, fmt.Errorf("read the output of %s: %w", id, err)
	}
	return text, nil
}

// group joins facts to passages.
type group struct {
	b      *batch
	source *search.Source
	when   func(offset int64) time.Time
	text   strings.Builder
	lines  []search.Line
	kind   driver.FactKind
	part   bool // the last fact goes on in the next one
}

// take adds a fact, whose line begins at an offset.
func (g *group) take(at int64, f *driver.Fact) {
	text := words(f)
	if text == "" {
		return
	}
	if g.text.Len() > 0 && f.Kind != g.kind {
		g.flush()
	}
	for text != "" {
		if g.text.Len() > 0 && g.text.Len()+len(text) > search.PassageBytes && !g.part || g.text.Len() >= search.PassageBytesMax {
			g.flush()
		}
		if g.text.Len() > 0 && !g.part {
			g.text.WriteByte('\n')
		}
		g.part = false
		g.kind = f.Kind
		g.lines = append(g.lines, search.Line{Text: g.text.Len(), At: at})
		n := cut(text, search.PassageBytesMax-g.text.Len())
		if n == 0 {
			n = len(text) // no room for a character
		}
		g.text.WriteString(text[:n])
		text = text[n:]
	}
	g.part = f.Part
}

// cut is the largest number of bytes, most at most, that splits no word, or at least no character.
func cut(text string, most int) int {
	if len(text) <= most {
		return len(text)
	}
	most = max(most, 0)
	if at := strings.LastIndexAny(text[:most], " \n\t"); at > most/2 {
		return at + 1
	}
	return len(clip.To(text, most))
}

func (g *group) flush() {
	if g.text.Len() == 0 {
		return
	}
	first := g.lines[0].At
	g.b.add(search.Passage{
		Place: search.Place{Kind: search.Output, Entity: g.source.ID, Agent: g.source.Agent},
		Time:  g.when(first), At: first, Text: g.text.String(), Lines: g.lines,
	})
	g.text.Reset()
	g.lines, g.part = nil, false
}

// words are what a fact says, as the page shows it.
func words(f *driver.Fact) string {
	switch f.Kind {
	case driver.Said, driver.Thought, driver.Faulted, driver.PermissionAsked, driver.RateLimited, driver.ProviderAway,
		driver.PermissionWithdrawn:
	case driver.ToolCalled:
		return strings.TrimSpace(f.Tool + " " + plain(f.Text))
	case driver.Stopped:
		return strings.TrimSpace(plain(f.Stop.Detail))
	case driver.UsageReported, driver.Listening, driver.PermissionAnswered, driver.ConversationNamed:
		return ""
	}
	return plain(f.Text)
}

// plain is a text without the escape sequences of terminals.
func plain(text string) string { return strings.TrimRight(driver.WithoutEscapes(text), " \t\r\n") }

// running reads what the sessions that run have written. done is false if the batch is full before.
func (b *batch) running(ctx context.Context) (done bool, err error) {
	list, err := b.x.opts.Index.OpenSources(ctx)
	if err != nil {
		return false, err
	}
	for _, s := range list {
		if s.File != "" || b.sources[s.ID] != nil && !b.sources[s.ID].Open {
			continue
		}
		if done, err := b.output(ctx, s.ID, time.Now(), -1, false); err != nil || !done {
			return false, err
		}
	}
	return true, nil
}
