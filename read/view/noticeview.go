package view

import "time"

// NoticeTarget is one target of notices. Its address is a secret and is not shown.
type NoticeTarget struct {
	Name     string     `json:"name"`
	Kind     string     `json:"kind" doc:"desktop, the scheme of its address, or the host of a webhook"`
	Events   []string   `json:"events" doc:"What it is sent"`
	Quiet    string     `json:"quiet,omitempty" doc:"Hours of the day in which nothing is sent, with their time zone"`
	PerHour  int        `json:"per_hour" doc:"The most messages in an hour"`
	State    string     `json:"state" enum:"reached,failing" doc:"failing: the last message was not delivered"`
	Since    *time.Time `json:"failing_since,omitempty"`
	Cause    string     `json:"cause,omitempty" doc:"Why the last message was not delivered"`
	WayOut   string     `json:"way_out,omitempty" doc:"What to do about it"`
	Waiting  int        `json:"waiting" doc:"Matters that it is still to be told"`
	LastHour int        `json:"sent_last_hour" doc:"Messages of the last hour"`
	Counted  int        `json:"left_out_last_hour" doc:"Matters that these messages only counted"`
	LastAt   *time.Time `json:"last_at,omitempty" doc:"When the last message was delivered"`
}

// NoticeTest is the result of a test notice.
type NoticeTest struct {
	Target    string `json:"target"`
	Kind      string `json:"kind"`
	Delivered bool   `json:"delivered"`
	Cause     string `json:"cause,omitempty" doc:"Why it was not delivered"`
	WayOut    string `json:"way_out,omitempty" doc:"What to do about it"`
}
