package team

import (
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/machine/notice"
)

// noticeTargetsMax limits the remembered targets. A configuration has fewer; those that were renamed or removed long
// ago are forgotten first.
const noticeTargetsMax = 64

// noticeSent records what came of a message to a target of notify.
func noticeSent(d *draft, sent notice.Sent) {
	before := d.team.Notices[sent.Target]
	next, rule, changed := before.After(sent, d.ev.At)
	if changed {
		d.add("notice/"+sent.Target, "notice", rule.ID, string(before.State()), string(rule.To), string(sent.Outcome()), Body{Notice: &next})
	}
}

// forgetNotices keeps the number of remembered targets within its limit.
func forgetNotices(t *Team) {
	if len(t.Notices) <= noticeTargetsMax {
		return
	}
	newest := func(name string) int64 {
		r := t.Notices[name]
		at := r.From
		for _, m := range r.Told {
			if m.At.After(at) {
				at = m.At
			}
		}
		return at.UnixNano()
	}
	oldest := slices.MinFunc(slices.Sorted(maps.Keys(t.Notices)), func(a, b string) int { return int(min(1, max(-1, newest(a)-newest(b)))) })
	delete(t.Notices, oldest)
}
