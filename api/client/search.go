package client

import (
	"context"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/view"
)

// SearchQuery is a search; empty fields are left out.
type SearchQuery struct {
	Text, Agent string
	Kinds       []string
	Since       time.Time
	Limit       int
	Before      int64
}

// Search finds what was said, done, asked and changed.
func (c *Client) Search(ctx context.Context, q SearchQuery) (view.SearchPage, error) {
	values := url.Values{"q": {q.Text}}
	if len(q.Kinds) > 0 {
		values.Set("kind", strings.Join(q.Kinds, ","))
	}
	if q.Agent != "" {
		values.Set("agent", q.Agent)
	}
	if !q.Since.IsZero() {
		values.Set("since", q.Since.UTC().Format(time.RFC3339))
	}
	if q.Limit > 0 {
		values.Set("limit", strconv.Itoa(q.Limit))
	}
	if q.Before > 0 {
		values.Set("before", strconv.FormatInt(q.Before, 10))
	}
	return Get[view.SearchPage](ctx, c, "/search", values)
}
