package client

import (
	"context"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/view"
)

// NoticeTargets returns the receivers of notices in the order of fairlead.yaml.
func (c *Client) NoticeTargets(ctx context.Context) ([]view.NoticeTarget, error) {
	all, err := Get[api.NoticeTargets](ctx, c, "/notify", nil)
	return all.Targets, err
}

// TestNotice sends a test notice to one target, or to all without a name. The error is a *Refused if there is no target
// or the caller is an agent.
func (c *Client) TestNotice(ctx context.Context, target string) ([]view.NoticeTest, error) {
	body := map[string]string{}
	if target != "" {
		body["target"] = target
	}
	done, err := Post[api.NoticeTests](ctx, c, "/notify/test", body)
	return done.Tests, err
}
