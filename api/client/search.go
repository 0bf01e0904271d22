package client

import (
	"context"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/view"
)

// Search finds what was said, done, asked and changed.
func (c *Client) Search(ctx context.Context, q api.SearchQuery) (view.SearchPage, error) {
	return Get[view.SearchPage](ctx, c, "/search", queryOf(q))
}
