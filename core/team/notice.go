package team

import (
	"maps"
	"slices"

	"github.com/fairlead-dev/fairlead/core/notice"
)

// noticeTargetsMax limits the remembered targets. A configuration has fewer; those that were renamed or removed long
// ago are forgotten first.
const noticeTargetsMax = 64

// noticeSent records what came of a message to a target of notify.
func (d *decision) noticeSent(sent notice.Sent) {
	before := d.team.Notices[sent.Target]
	next, rule, changed := before.After(sent, d.ev.At)
	if changed {
		d.add("notice/"+sent.Target, "notice", rule.ID, string(before.State()), string(rule.To), string(sent.Outcome()),
			&next)
	}
}

// forgetNotices keeps the number of remembered targets within its limit.
func (t *Team) forgetNotices() {
	if len(t.Notices) <= noticeTargetsMax {
		return
	}
	oldest := slices.MinFunc(slices.Sorted(maps.Keys(t.Notices)),
		func(a, b string) int { return t.Notices[a].Last().Compare(t.Notices[b].Last()) })
	delete(t.Notices, oldest)
}
