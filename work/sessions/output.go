package sessions

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/process/driver"
)

// Output reads a session's output from byte offset on. It follows the output while the session
// runs.
func (c *Controller) Output(ctx context.Context, session string, offset int64) (io.ReadCloser, SessionInfo, error) {
	info, err := c.Session(ctx, session)
	if err != nil {
		return nil, info, err
	}
	if proc := c.Proc(session); proc != nil {
		out, err := proc.Output(ctx, offset)
		return out, info, err
	}
	out, err := c.opts.Host.Output(ctx, session, offset)
	return out, info, err
}

// Facts are parsed from the output on each request; an answer is limited in number and in bytes.
const (
	FactsMax      = 2000
	FactsBytesMax = 8 << 20 // a single line can have a megabyte
)

// Facts returns what the driver understood of a session's output so far: at most tail facts, fewer
// if they are very long, the newest last. With from, an offset at which a line begins, it returns the
// first facts after it instead; -1: no offset. It reads a running session for at most wait.
func (c *Controller) Facts(ctx context.Context, session string, from int64, tail int, wait time.Duration) ([]driver.Fact, error) {
	info, err := c.Session(ctx, session)
	if err != nil {
		return nil, err
	}
	d, ok := c.opts.Drivers[info.Driver]
	if !ok {
		return nil, &team.Unknown{What: "driver", Name: info.Driver, Known: table.Names(c.opts.Drivers)}
	}
	if tail <= 0 || tail > FactsMax {
		tail = FactsMax
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	last := Newest{Most: tail}
	conv := d.Converse(driver.Agent{Name: info.Agent}, driver.Session{ID: session}, ReadOnly{E: c, Session: session})
	for fact, err := range conv.Facts(ctx, max(from, 0)) {
		switch {
		case err == nil && from >= 0 && last.full():
			return last.Facts, nil
		case err != nil && ctx.Err() != nil: // the session still runs
			return last.Facts, nil
		case err != nil:
			return last.Facts, fmt.Errorf("read the output of %s: %w", session, err)
		}
		last.Add(fact)
	}
	return last.Facts, nil
}

// Newest keeps the last facts of many.
type Newest struct {
	Most  int
	Facts []driver.Fact
	bytes int
}

// full reports whether Add would drop a fact.
func (n *Newest) full() bool { return len(n.Facts) >= n.Most || n.bytes >= FactsBytesMax }

// Add keeps a fact and drops the oldest beyond the limit.
func (n *Newest) Add(fact driver.Fact) {
	n.Facts = append(n.Facts, fact)
	n.bytes += bytesOf(fact)
	for len(n.Facts) > n.Most || (n.bytes > FactsBytesMax && len(n.Facts) > 1) {
		n.bytes -= bytesOf(n.Facts[0])
		n.Facts[0] = driver.Fact{} // releases the text although the array stays
		n.Facts = n.Facts[1:]
	}
}

func bytesOf(fact driver.Fact) int { return len(fact.Text) + len(fact.Args) + len(fact.Raw) }

// ReadOnly is a wire without input.
type ReadOnly struct {
	E       *Controller
	Session string
}

// Output is driver.Wire's: a session's output from an offset on.
func (r ReadOnly) Output(ctx context.Context, offset int64) (io.ReadCloser, error) {
	out, _, err := r.E.Output(ctx, r.Session, offset)
	return out, err
}

// Send is driver.Wire's; it fails.
func (r ReadOnly) Send(context.Context, []byte) error { return io.ErrClosedPipe }

// CloseInput is driver.Wire's; it fails.
func (r ReadOnly) CloseInput(context.Context) error { return io.ErrClosedPipe }
