package server

import (
	"context"
	"net/http"

	"github.com/fairlead-dev/fairlead/api"
)

func noticeRoutes() []route {
	return []route{
		{
			"list-notice-targets", http.MethodGet, "/notify", "List the targets of notices",
			"The targets of `notify` in the order of fairlead.yaml, with their rules, and why a target cannot be reached. Addresses are secret and not shown.",
			answer(handleNoticeTargets),
		},
		{
			"test-notice", http.MethodPost, "/notify/test", "Send a test notice",
			"To one target, or to all. The answer has the result of each. Agents may not do this (X10).",
			answer(handleTestNotice),
		},
	}
}

func handleNoticeTargets(ctx context.Context, s *Server, _ *nothing) (*api.NoticeTargets, error) {
	all, err := s.engine.Notices.NoticeTargets(ctx)
	return &api.NoticeTargets{Targets: some(all)}, err
}

type testNoticeIn struct {
	Body struct {
		Target string `json:"target,omitempty" maxLength:"64" doc:"Its name; absent: all targets"`
	}
}

func handleTestNotice(ctx context.Context, s *Server, in *testNoticeIn) (*api.NoticeTests, error) {
	if err := identity(ctx).MayAnswer("test", "notify"); err != nil {
		return nil, err
	}
	done, err := s.engine.Notices.TestNotice(ctx, s.actor(ctx), in.Body.Target)
	return &api.NoticeTests{Tests: some(done)}, err
}
