package sim

// ofChannels are faults in the channels between agents and people.
var ofChannels = []mutant{
	{
		breaks: "the number of a turn is not checked",
		file:   "core/channel/rotation.go", old: "c.head.Holder != t.Agent || c.head.Turn != t.Turn {", new: "c.head.Holder != t.Agent {",
	},
	{
		breaks: "an agent that a person displaces keeps the turn",
		file:   "core/channel/rotation.go", old: "	if h.Holder != \"\" {\n		c.must(h.Holder, Displaced)\n	}\n", new: "",
	},
	{
		breaks: "the end of a turn closes no messages",
		file:   "core/channel/act.go", old: "		closed = append(closed, m.N)\n", new: "		_ = append(closed, m.N)\n",
	},
	{
		breaks: "messages that an agent received early are delivered again",
		file:   "work/turns/prompt.go", old: "return slices.Contains(g.But, n) })",
		new: "return n == 0 })",
	},
	{
		breaks: "a turn delivers one message too few",
		file:   "work/turns/prompt.go", old: "for n := g.From; n <= g.To; n++ {",
		new: "for n := g.From + 1; n <= g.To; n++ {",
	},
	{
		breaks: "the text of a message is not stored with its number",
		file:   "core/team/channel.go", old: "set.Text, set.Session = d.ev.Text, d.sessionOf(d.ev.What)",
		new: "_, set.Session = d.ev.Text, d.sessionOf(d.ev.What)",
	},
	{
		breaks: "a channel is not notified that a message was delivered",
		file:   "core/team/delivery.go",
		old:    "	d.recordDelivery(a, delivery)\n	return d.leadDelivered(delivery)\n}\n\nfunc (d *decision) recordDelivery",
		new:    "	d.recordDelivery(a, delivery)\n	return nil\n}\n\nfunc (d *decision) recordDelivery",
	},
	{
		breaks: "a message counts as delivered although its session never started",
		file:   "core/team/delivery.go", old: "		if !delivery.Confirmed {\n			return nil",
		new: "		if !delivery.Confirmed && delivery.Confirmed {\n			return nil",
	},
	{
		breaks: "a session for channels starts for a delivery that is no longer due",
		file:   "core/team/delivery.go", old: "	return false, \"the action is no longer pending\"\n", new: "	return true, \"\"\n",
	},
	{
		breaks: "an idle session for channels never ends",
		file:   "core/team/delivery.go", old: "	return !some && (len(a.Queue) > 0", new: "	return some && (len(a.Queue) > 0",
		file2: "core/team/delivery.go", old2: "	return s.Delivery.Over.Add(channelIdleMax)\n", new2: "	return time.Time{}\n",
	},
	{
		breaks: "a crash during a turn counts as the end of the answer",
		file:   "core/team/delivery.go",
		old:    "	return d.channels(channel.AgentGone{Agent: delivery.Token.Agent, How: channel.Crashed, Why: s.ID + \": \" + s.Why})\n",
		new:    "	return d.channels(channel.Said{Token: delivery.Token, Re: delivery.Re, Ended: true})\n",
		pkg:    "./core/team", run: ".",
	},
	{
		breaks: "input that was written before a crash is not detected after it",
		file:   "work/listen/channel.go", old: "		if label == \"\" || label == now.Delivery.Key {",
		new: "		if label != \"-\" {",
	},
	{
		breaks: "posts and the output offset are appended separately",
		file:   "work/listen/channel.go", old: "	resume := t.resume\n	_, err := ",
		new: "	resume := t.resume\n	_, _ = l.e.loop.Do(ctx, loop.Request{Derive: loop.Report(events[:len(events)-1]...)})\n	events = events[len(events)-1:]\n	_, err := ",
	},
	{
		breaks: "output during the write of a message counts as the answer to that message",
		file:   "work/listen/session.go",
		old:    "		if err := l.channel.v.WriteLock.Lock(ctx); err != nil {\n			return false, err\n		}\n		defer l.channel.v.WriteLock.Unlock()\n",
		new:    "",
	},
	{
		breaks: "a prompt is written without a final check that it is still due",
		file:   "work/turns/tell.go", old: "key string) error {\n	still := false\n",
		new:   "key string) error {\n	still := true\n",
		file2: "work/turns/tell.go", old2: "			still = ok && next.Key == key\n", new2: "			_ = ok && next.Key == key\n",
	},
	{
		breaks: "the next message is written to an agent during its answer",
		file:   "work/turns/tell.go", old: "		case !s.AnswerPending():\n			return one",
		new: "		case true:\n			return one",
	},
	{
		breaks: "the timers of channels are not set after a start",
		file:   "work/turns/hooks.go",
		old:    "	for id := range c.loop.State().Channels.ByID {\n		c.timers.set(id, c.loop.State().Channels.Deadline(id))\n	}\n",
		new:    "",
	},
	{
		breaks: "a channel that changes keeps its old timer",
		file:   "work/turns/hooks.go", old: "	for id := range n.channels {\n		c.timers.set(id, c.loop.State().Channels.Deadline(id))\n",
		new: "	for id := range n.channels {\n",
	},
}
