package sim

// ofChannels are faults in what agents and people say to each other.
var ofChannels = []mutant{
	{
		breaks: "the number of a turn is not looked at: who has one, speaks in any",
		file:   "machine/channel/rotation.go", old: "c.head.Holder != t.Agent || c.head.Turn != t.Turn {", new: "c.head.Holder != t.Agent {",
	},
	{
		breaks: "who is displaced by a person keeps the turn",
		file:   "machine/channel/rotation.go", old: "	if h.Holder != \"\" {\n		c.must(h.Holder, Displaced)\n	}\n", new: "",
	},
	{
		breaks: "a turn that ends answers nobody",
		file:   "machine/channel/act.go", old: "		closed = append(closed, m.N)\n", new: "		_ = append(closed, m.N)\n",
	},
	{
		breaks: "what an agent has ahead is given to it again",
		file:   "engine/talkprompt.go", old: "return slices.Contains(g.But, n) })", new: "return n == 0 })",
	},
	{
		breaks: "an agent is given one message too few with its turn",
		file:   "engine/talkprompt.go", old: "for n := g.From; n <= g.To; n++ {", new: "for n := g.From + 1; n <= g.To; n++ {",
	},
	{
		breaks: "the words of a message are not kept with its number",
		file:   "team/channel.go", old: "set.Text, set.Session = d.ev.Text, d.sessionOf(d.ev.What)", new: "_, set.Session = d.ev.Text, d.sessionOf(d.ev.What)",
	},
	{
		breaks: "a channel does not hear that an agent was told",
		file:   "team/delivery.go", old: "	d.recordDelivery(a, delivery)\n	return d.leadDelivered(delivery)\n}\n\nfunc (d *draft) recordDelivery",
		new: "	d.recordDelivery(a, delivery)\n	return nil\n}\n\nfunc (d *draft) recordDelivery",
	},
	{
		breaks: "whose session was never seen counts as told",
		file:   "team/delivery.go", old: "		if !talk.Told {\n			return nil", new: "		if !talk.Told && talk.Told {\n			return nil",
	},
	{
		breaks: "a session for channels begins with what is over",
		file:   "team/delivery.go", old: "	return false, \"what it was to be told is over\"\n", new: "	return true, \"\"\n",
	},
	{
		breaks: "a session for channels stays for ever",
		file:   "team/delivery.go", old: "	return !some && (len(a.Queue) > 0", new: "	return some && (len(a.Queue) > 0",
		file2: "team/delivery.go", old2: "	return s.Delivery.Over.Add(channelIdleMax)\n", new2: "	return time.Time{}\n",
	},
	{
		breaks: "a crash in the middle of a turn is an answer that has ended",
		file:   "team/delivery.go", old: "	return d.channels(channel.AgentGone{Agent: talk.Token.Agent, How: channel.Crashed, Why: s.ID + \": \" + s.Why})\n",
		new: "	return d.channels(channel.Said{Token: delivery.Token, Re: delivery.Re, Ended: true})\n",
		pkg: "./team", run: ".",
	},
	{
		breaks: "what was typed before a crash is not looked for after it",
		file:   "engine/talkear.go", old: "		if label == \"\" || label == now.Talk.Key {", new: "		if label != \"-\" {",
	},
	{
		breaks: "what is said and the place in the output are two appends",
		file:   "engine/talkear.go", old: "	resume := t.resume\n	_, err := ", new: "	resume := t.resume\n	_, _ = l.e.ask(ctx, request{events: events[:len(events)-1]})\n	events = events[len(events)-1:]\n	_, err := ",
	},
	{
		breaks: "words that an agent says while it is being told something count for that",
		file:   "engine/ear.go", old: "		if err := l.talk.v.pen.take(ctx); err != nil {\n			return false, err\n		}\n		defer l.talk.v.pen.giveBack()\n", new: "",
	},
	{
		breaks: "nobody asks once more whether a prompt is wanted before it is typed",
		file:   "engine/talk.go", old: "key string) error {\n	still := false\n", new: "key string) error {\n	still := true\n",
		file2: "engine/talk.go", old2: "			still = ok && next.Key == key\n", new2: "			_ = ok && next.Key == key\n",
	},
	{
		breaks: "an agent is told the next thing in the middle of its answer",
		file:   "engine/talk.go", old: "		case !s.Answers():\n			return one", new: "		case true:\n			return one",
	},
	{
		breaks: "the timers of channels are not set after a start",
		file:   "engine/channeldue.go", old: "	for id := range e.team.Channels.ByID {\n		e.dues.set(id, e.team.Channels.Deadline(id))\n	}\n", new: "",
	},
	{
		breaks: "a channel that moves keeps the timer that it had",
		file:   "engine/channeldue.go", old: "	for id := range n.channels {\n		e.dues.set(id, e.team.Channels.Deadline(id))\n", new: "	for id := range n.channels {\n",
	},
}
