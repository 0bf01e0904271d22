package sim

// ofCrew are faults in what a lead reports about its crew and in how Fairlead uses the reports.
var ofCrew = []mutant{
	{
		breaks: "an agent that registers again gets another identity",
		file:   "core/crew/table.go", old: "		RegisteredHere:  {ID: \"P4\", To: Alive, Do: do(NoteAlive), Why: \"registered again;",
		new: "		RegisteredHere:  {ID: \"P4\", To: Alive, Do: do(TakeIdentity, NoteAlive), Why: \"registered again;",
	},
	{
		breaks: "a crew stays alive after its lead has ended",
		file:   "core/crew/table.go", old: "		LeadGone:        {ID: \"P3\", To: Sleeping},\n",
		new: "		LeadGone:        {ID: \"P3\", To: Alive},\n",
	},
	{
		breaks: "an agent that a report does not list stays alive",
		file:   "core/crew/table.go",
		old:    "		NotListed:       {ID: \"P5\", To: Sleeping},\n		LeadUnheard:     {ID: \"P6\", To: Unknown},\n		ImportedAgain:   {ID: \"X7\", To: Alive,",
		new:    "		NotListed:       {ID: \"P5\", To: Alive},\n		LeadUnheard:     {ID: \"P6\", To: Unknown},\n		ImportedAgain:   {ID: \"X7\", To: Alive,",
	},
	{
		breaks: "a daemon trusts reports that the daemon before it received",
		file:   "core/crew/table.go",
		old:    "		LeadUnheard:     {ID: \"P6\", To: Unknown},\n		ImportedAgain:   {ID: \"X7\", To: Alive,",
		new:    "		LeadUnheard:     {ID: \"P6\", To: Alive},\n		ImportedAgain:   {ID: \"X7\", To: Alive,",
	},
	{
		breaks: "a document from another device is alive at once",
		file:   "core/crew/table.go", old: "ImportedAwake:    {ID: \"P13\", To: Unknown,",
		new: "ImportedAwake:    {ID: \"P13\", To: Alive,",
	},
	{
		breaks: "a lead that outlived a daemon is not asked for its status",
		file:   "core/crew/table.go",
		old:    "		Forgotten:     {ID: \"P6\", To: Idle, Do: doLead(Forget)},\n		Adopted:       {ID: \"P6\", To: Idle, Do: doLead(TakeSession, QueueStatus, MoreTime)",
		new:    "		Forgotten:     {ID: \"P6\", To: Idle, Do: doLead(Forget)},\n		Adopted:       {ID: \"P6\", To: Idle, Do: doLead(TakeSession, MoreTime)",
	},
	{
		breaks: "silence does not end a summon, only its time limit does",
		file:   "core/crew/decide.go", old: "		earlier(c.Lead.Ends)\n", new: "",
	},
	{
		breaks: "a placeholder expires a minute too soon",
		file:   "core/crew/summon.go", old: "doc.CreatedAt.Add(d.lead.hatchMax())) {",
		new: "doc.CreatedAt.Add(d.lead.hatchMax() - time.Minute)) {",
	},
	{
		breaks: "documents contain the local session id instead of the globally unique one",
		file:   "core/crew/decide.go", old: "next.LastSession = d.now.At, d.lead.UUID", new: "next.LastSession = d.now.At, d.lead.Session",
	},
	{
		breaks: "every session of the lead has the same id",
		file:   "core/team/crew.go",
		old:    "	sum := sha256.Sum256(fmt.Appendf(nil, \"lead session %s %s %d %d\", id, d.team.BootID, d.team.Epoch, d.ev.At.UnixNano()))\n",
		new:    "	sum := sha256.Sum256([]byte(\"lead session\"))\n",
	},
	{
		breaks: "messages of crew members count as messages of their lead",
		file:   "core/crew/input.go", old: "ok && (name == lead || known(name)) {", new: "ok && name == lead {",
	},
	{
		breaks: "a delivery to the lead is not recorded",
		file:   "core/team/crew.go", old: "		return d.crew(crew.ActionReceived{N: delivery.N})\n", new: "		return nil\n",
	},
	{
		breaks: "a request to put the crew to sleep succeeds and has no effect",
		file:   "core/team/crew.go", old: "		return d.endSession(&next, why, false)\n",
		new: "		_ = next\n		return nil\n",
	},
	{
		breaks: "the crew is not notified that the lead's session ended",
		file:   "core/team/crew.go", old: "	return d.crew(crew.LeadEnded{Session: s.ID, Why: cmp.Or(s.Why, \"it ended by itself\")})\n",
		new: "	_ = cmp.Or(s.Why)\n	return nil\n",
	},
	{
		breaks: "a summon starts while the team is held",
		file:   "core/crew/decide.go", old: "	case d.now.Held:\n", new: "	case d.now.Held && d.now.At.IsZero():\n",
	},
	{
		breaks: "a summon starts although a limit is exceeded",
		file:   "core/crew/decide.go", old: "	case d.now.Limit != \"\":\n", new: "	case d.now.Limit != \"\" && d.now.At.IsZero():\n",
	},
	{
		breaks: "an agent that wakes gets the lead's messages instead of its own",
		file:   "work/crew/lead.go", old: "c.MessagesFor(ctx, doc.LastSession, doc.Name)",
		new: "c.MessagesFor(ctx, doc.LastSession, lead)",
	},
	{
		breaks: "the timers of the crew are not set",
		file:   "work/crew/lead.go", old: "		Next:    func() time.Time { return c.loop.State().Crew.Deadline() },\n",
		new: "",
	},
	{
		breaks: "an incomplete marker is lost when the daemon restarts",
		file:   "work/listen/lead.go", old: "	if t.scan.Pending() > 0 {\n		return nil\n	}\n	facts",
		new: "	facts",
	},
	{
		breaks: "a lead's marker is also shown as conversation",
		file:   "work/listen/lead.go", old: "		t.part = false",
		new: "		t.text = append(t.text, piece.Marker.Text...)",
	},
	{
		breaks: "any agent in a channel can report the status of the crew",
		file:   "work/listen/lead.go",
		old:    "		l.stray = append(l.stray, *loop.EventBy(turns.ByAgent(l.m.Conf.Name), \"\", crew.Faulty{\n			Agent: l.m.Conf.Name, Session: l.s.ID,",
		new:    "		if agents, err := crewdocs.ParseStatus([]byte(line[max(0, strings.IndexByte(line, '{')):])); err == nil {\n			l.stray = append(l.stray, *loop.EventBy(turns.ByAgent(l.m.Conf.Name), \"\", crew.Reported{Session: l.e.State().Crew.Lead.Session, Agents: agents}))\n		}\n		l.stray = append(l.stray, *loop.EventBy(turns.ByAgent(l.m.Conf.Name), \"\", crew.Faulty{\n			Agent: l.m.Conf.Name, Session: l.s.ID,",
	},
	{
		breaks: "content that another program wrote to a document counts as recorded before it is",
		file:   "work/crew/presencefiles.go", old: "			offered = append(offered, seen)\n",
		new: "			p.took(seen)\n			offered = append(offered, seen)\n",
	},
	{
		breaks: "every document counts as written by Fairlead and is overwritten",
		file:   "work/crew/presencefiles.go", old: "		case f.now != nil:\n",
		new:   "		case f.now != nil && f.seen == 0:\n",
		file2: "work/crew/presencefiles.go", old2: "func(sum file.Sum) bool { return doc.Ours(string(sum)) })",
		new2: "func(file.Sum) bool { return true })",
	},
	{
		breaks: "what a write to a document replaced is let go of before it is recorded",
		file:   "work/crew/presencefiles.go", old: "			f.old = append(f.old, seen)\n",
		new: "			p.took(seen)\n",
	},
	{
		breaks: "a document that cannot be read is overwritten and not put aside",
		file:   "work/crew/presencefiles.go", old: "		case seen.Kind == exchange.KindDeleted ||",
		new: "		case seen.Kind == exchange.KindDeleted || seen.Kind == exchange.KindMalformed ||",
	},
	{
		breaks: "a late write into a replaced file is not reported",
		file:   "files/exchange/swapped.go", old: "	case sum == s.sum && !there.Moved:\n", new: "	case sum == s.sum || age >= 0:\n",
		pkg: "./files/exchange", run: "SwappedOut|PutAside",
	},
	{
		breaks: "another file than the observed one is put aside",
		file:   "files/exchange/swapped.go", old: "	if err != nil || there.String() != seen.Ident {\n", new: "	if err != nil {\n",
		pkg: "./files/exchange", run: "PutAside",
	},
	{
		breaks: "a folder full of documents is read without a limit",
		file:   "files/exchange/watch.go", old: "		case room <= 0:\n", new: "		case room <= -unconfirmedMax*unconfirmedMax:\n",
		pkg: "./files/exchange", run: "Unconfirmed",
	},
	{
		breaks: "unknown fields of a document are dropped",
		file:   "core/crew/import.go", old: "	if !bytes.Equal(is.Extra, doc.Extra) {\n",
		new: "	if bytes.Equal(is.Extra, doc.Extra) && len(is.Extra) > 0 {\n",
	},
	{
		breaks: "actions for a lead outlive its session and open the next one",
		file:   "core/crew/table.go", old: "\"L3\", To: Idle, Do: doLead(DropSession, DropActions)},",
		new: "\"L3\", To: Idle, Do: doLead(DropSession)},",
	},
	{
		breaks: "a summon takes the lead's own seat",
		file:   "core/crew/summon.go", old: "		if seat != LeadSeat {\n", new: "		if seat != SeatMax+1 {\n",
	},
}
