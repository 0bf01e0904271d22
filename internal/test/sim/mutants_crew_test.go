package sim

// ofCrew are faults in what a lead says of its team, and in what becomes of it.
var ofCrew = []mutant{
	{
		breaks: "who is registered again is made another one",
		file:   "machine/crew/table.go", old: "		RegisteredHere:  {ID: \"P4\", To: Alive, Do: do(NoteAlive), Why: \"registered again;", new: "		RegisteredHere:  {ID: \"P4\", To: Alive, Do: do(TakeIdentity, NoteAlive), Why: \"registered again;",
	},
	{
		breaks: "a team stays alive when its lead has ended",
		file:   "machine/crew/table.go", old: "		LeadGone:        {ID: \"P3\", To: Sleeping},\n", new: "		LeadGone:        {ID: \"P3\", To: Alive},\n",
	},
	{
		breaks: "who is not in a report stays alive",
		file:   "machine/crew/table.go", old: "		NotListed:       {ID: \"P5\", To: Sleeping},\n		LeadUnheard:     {ID: \"P6\", To: Unknown},\n		ImportedAgain:   {ID: \"X7\", To: Alive,",
		new: "		NotListed:       {ID: \"P5\", To: Alive},\n		LeadUnheard:     {ID: \"P6\", To: Unknown},\n		ImportedAgain:   {ID: \"X7\", To: Alive,",
	},
	{
		breaks: "a daemon believes what was reported to the one before it",
		file:   "machine/crew/table.go", old: "		LeadUnheard:     {ID: \"P6\", To: Unknown},\n		ImportedAgain:   {ID: \"X7\", To: Alive,", new: "		LeadUnheard:     {ID: \"P6\", To: Alive},\n		ImportedAgain:   {ID: \"X7\", To: Alive,",
	},
	{
		breaks: "a document from another device is alive at once",
		file:   "machine/crew/table.go", old: "ImportedAwake:    {ID: \"P13\", To: Unknown,", new: "ImportedAwake:    {ID: \"P13\", To: Alive,",
	},
	{
		breaks: "a lead that outlived a daemon is not asked who is awake",
		file:   "machine/crew/table.go", old: "		Forgotten:     {ID: \"P6\", To: Idle, Do: doLead(Forget)},\n		Adopted:       {ID: \"P6\", To: Idle, Do: doLead(TakeSession, QueueStatus, MoreTime)",
		new: "		Forgotten:     {ID: \"P6\", To: Idle, Do: doLead(Forget)},\n		Adopted:       {ID: \"P6\", To: Idle, Do: doLead(TakeSession, MoreTime)",
	},
	{
		breaks: "a summon does not end by silence, but by its time alone",
		file:   "machine/crew/decide.go", old: "		earlier(c.Lead.Ends)\n", new: "",
	},
	{
		breaks: "a placeholder expires a minute too soon",
		file:   "machine/crew/ceremony.go", old: "doc.CreatedAt.Add(d.lead.hatchMax())) {", new: "doc.CreatedAt.Add(d.lead.hatchMax() - time.Minute)) {",
	},
	{
		breaks: "documents say which session of this machine, and not of all",
		file:   "machine/crew/decide.go", old: "next.LastSession = d.now.At, d.lead.UUID", new: "next.LastSession = d.now.At, d.lead.Session",
	},
	{
		breaks: "the lead's session has the same name every time",
		file:   "team/crew.go", old: "	sum := sha256.Sum256(fmt.Appendf(nil, \"lead session %s %s %d %d\", sessionID(a.Name, a.Opened+1), d.team.BootID, d.team.Epoch, d.ev.At.UnixNano()))\n",
		new: "	sum := sha256.Sum256(fmt.Appendf(nil, \"lead session %s\", a.Name))\n",
	},
	{
		breaks: "what the team says through its lead counts as the lead's",
		file:   "machine/crew/input.go", old: "ok && (name == lead || known(name)) {", new: "ok && name == lead {",
	},
	{
		breaks: "nobody notes that the lead was told",
		file:   "team/crew.go", old: "		return d.crew(crew.ActionTold{N: delivery.N})\n", new: "		return nil\n",
	},
	{
		breaks: "a person who puts the team to sleep is told so, and nothing comes of it",
		file:   "team/crew.go", old: "		return d.endSession(&next, words, false)\n", new: "		_ = next\n		return nil\n",
	},
	{
		breaks: "that the lead session ended is heard by nobody of the team",
		file:   "team/crew.go", old: "	return d.crew(crew.LeadEnded{Session: s.ID, Why: cmp.Or(s.Why, \"it ended by itself\")})\n", new: "	_ = cmp.Or(s.Why)\n	return nil\n",
	},
	{
		breaks: "a summon is begun while the team is held",
		file:   "machine/crew/decide.go", old: "	case d.now.Held:\n", new: "	case d.now.Held && d.now.At.IsZero():\n",
	},
	{
		breaks: "a summon is begun over a limit",
		file:   "machine/crew/decide.go", old: "	case d.now.Limit != \"\":\n", new: "	case d.now.Limit != \"\" && d.now.At.IsZero():\n",
	},
	{
		breaks: "who wakes is handed what the lead said",
		file:   "engine/lead.go", old: "e.messagesFor(ctx, doc.LastSession, doc.Name)", new: "e.messagesFor(ctx, doc.LastSession, lead)",
	},
	{
		breaks: "the timers of the team are not set",
		file:   "engine/due.go", old: "	earlier(e.team.Crew.Deadline())\n", new: "",
	},
	{
		breaks: "a marker that is under way is forgotten with the daemon that heard its beginning",
		file:   "engine/leadear.go", old: "	if t.scan.Pending() > 0 {\n		return nil\n	}\n	facts", new: "	facts",
	},
	{
		breaks: "a lead's marker is shown as conversation, too",
		file:   "engine/leadear.go", old: "		t.part = false // what was said before it is whole\n", new: "		t.text = append(t.text, piece.Marker.Text...)\n",
	},
	{
		breaks: "whoever talks in a channel can speak for the team",
		file:   "engine/leadear.go", old: "		l.stray = append(l.stray, *eventBy(byAgent(l.m.conf.Name), \"\", crew.Faulty{\n			Agent: l.m.conf.Name, Session: l.s.ID,",
		new: "		if agents, err := crewfile.ParseStatus([]byte(line[max(0, strings.IndexByte(line, '{')):])); err == nil {\n			l.stray = append(l.stray, *eventBy(byAgent(l.m.conf.Name), \"\", crew.Reported{Session: l.e.team.Crew.Lead.Session, Agents: agents}))\n		}\n		l.stray = append(l.stray, *eventBy(byAgent(l.m.conf.Name), \"\", crew.Faulty{\n			Agent: l.m.conf.Name, Session: l.s.ID,",
	},
	{
		breaks: "what somebody wrote into a document counts as kept before it is",
		file:   "engine/presencefiles.go", old: "			offered = append(offered, found)\n", new: "			p.took(found, sight)\n			offered = append(offered, found)\n",
	},
	{
		breaks: "what lies in a document's place is taken for ours, and written over",
		file:   "engine/presencefiles.go", old: "		if why, busy := sight.Busy[stem]; busy {", new: "		if why, busy := sight.Busy[stem]; busy && why != \"\" {",
		file2: "engine/presencefiles.go", old2: "func(sum file.Sum) bool { return doc.Ours(string(sum)) })", new2: "func(file.Sum) bool { return true })",
	},
	{
		breaks: "unknown fields of a document are dropped",
		file:   "machine/crew/import.go", old: "	if !bytes.Equal(is.Extra, doc.Extra) {\n", new: "	if bytes.Equal(is.Extra, doc.Extra) && len(is.Extra) > 0 {\n",
	},
	{
		breaks: "what a lead was to be told outlives it, and opens the next session by itself",
		file:   "machine/crew/table.go", old: "To: Idle, Do: doLead(DropSession, DropActions)},", new: "To: Idle, Do: doLead(DropSession)},",
	},
	{
		breaks: "a summon takes the lead's own seat",
		file:   "machine/crew/ceremony.go", old: "		if seat != LeadSeat {\n", new: "		if seat != SeatMax+1 {\n",
	},
}
