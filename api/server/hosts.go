package server

import (
	"context"
	"net/http"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/api/caller"
	"github.com/fairlead-dev/fairlead/app"
	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/table"
	"github.com/fairlead-dev/fairlead/read/view"
)

type hostIn struct {
	Name string `path:"name" maxLength:"63" pattern:"^[a-z0-9-]+$" example:"b" doc:"The host"`
	Body *api.EmptyBody
}

type inviteIn struct{ Body *api.InviteBody }

func hostRoutes() []route {
	return []route{
		{
			"list-hosts", http.MethodGet, "/hosts", "List the hosts of the team",
			"The machines on which its sessions run, with their leases, and the sessions that wait for a place. `on` is false if the repository is of one machine only. `/events` has each change of a host as the entity `host/NAME`.",
			asOf(answer(func(ctx context.Context, s *Server, _ *nothing) (*view.Hosts, error) {
				all, err := s.engine.Status.Hosts(ctx)
				all.Past = stale(s)
				return &all, err
			})),
		},
		{
			"show-leader", http.MethodGet, "/leader", "Show whether a leader answers",
			"A daemon of a host answers this itself, also while no leader answers it. An engine host then has a copy of the journal that commands read.",
			answer(func(_ context.Context, s *Server, _ *nothing) (*api.Leader, error) {
				is := leaderOf(s)
				return &is, nil
			}),
		},
		{
			"invite-host", http.MethodPost, "/hosts/invitations", "Invite a host",
			"The token lets one machine join the team, for 15 minutes. Only its hash is stored. Agents may not do this (X10).",
			created(answer(handleInvite)),
		},
		{
			"drain-host", http.MethodPost, "/hosts/{name}/drain", "Drain a host",
			"It gets no new session (H9), and leaves when its last one has ended. Agents may not do this (X10).",
			hostOrder("drain", func(e *app.App) namedOrder { return e.Cluster.DrainHost }),
		},
		{
			"remove-host", http.MethodPost, "/hosts/{name}/remove", "Remove a host",
			"Its lease is closed at once, and sessions that run there end by their deadline (H12, H13). It needs a new invitation to join again. Agents may not do this (X10).",
			hostOrder("remove", func(e *app.App) namedOrder { return e.Cluster.RemoveHost }),
		},
		{
			"lead-host", http.MethodPost, "/hosts/{name}/lead", "Let another engine host lead",
			"This daemon goes on as a host. Sessions go on where they run. Agents may not do this (X10).",
			answer(handleLead),
		},
		{
			"leave-cluster", http.MethodPost, "/cluster/leave", "Take the journal back to the leader's machine",
			"For a journal that three engine hosts keep. The other ones are ordinary hosts from then on (H17), and the daemon starts again with the journal as a file. Agents may not do this (X10).",
			ordered(
				func(by caller.Identity, _ *only[*api.EmptyBody]) error { return by.MayOrderHost("leave", "") },
				func(ctx context.Context, e *app.App, by change.Actor, _ *only[*api.EmptyBody]) (uint64, error) {
					return e.Cluster.KeepAlone(ctx, by)
				},
			),
		},
	}
}

func handleInvite(ctx context.Context, s *Server, in *inviteIn) (*api.Invitation, error) {
	if err := identity(ctx).MayOrderHost("invite", ""); err != nil {
		return nil, err
	}
	if s.opts.Invite == nil {
		return nil, &table.Refusal{
			Subject: "the team", Event: "invite", State: "one host",
			Reason: "this daemon leads no cluster; run `fairlead cluster init`, and then `fairlead reload`",
		}
	}
	var labels []string
	engine := in.Body != nil && in.Body.Engine
	if in.Body != nil {
		for _, label := range in.Body.Labels {
			labels = append(labels, string(label))
		}
	}
	by := s.actor(ctx)
	return s.opts.Invite(ctx, by.Kind+"/"+by.ID, labels, engine)
}

func handleLead(ctx context.Context, s *Server, in *hostIn) (*api.Leads, error) {
	if err := identity(ctx).MayOrderHost("lead", in.Name); err != nil {
		return nil, err
	}
	if s.opts.Lead == nil {
		return nil, &table.Refusal{
			Subject: "host " + in.Name, Event: "lead", State: "one host",
			Reason: "this daemon leads no cluster, so there is no other host that can lead",
		}
	}
	return &api.Leads{Leader: in.Name}, s.opts.Lead(ctx, in.Name)
}

func hostOrder(event string, order func(*app.App) namedOrder) adder {
	return ordered(
		func(by caller.Identity, in *hostIn) error { return by.MayOrderHost(event, in.Name) },
		func(ctx context.Context, e *app.App, by change.Actor, in *hostIn) (uint64, error) {
			return order(e)(ctx, by, in.Name)
		},
	)
}
