package api

// explained says what the fields of the engine's views mean, for the OpenAPI document: the
// engine does not know that it is described.
var explained = map[string]map[string]string{
	"AgentView": {
		"badge":           "RUNNING or IDLE, from current_state alone",
		"current_state":   "What the agent's side says it does: pause, continuous, run_once, run_cleanup, or unknown",
		"desired_state":   "What is wanted of it: pause, continuous, run_once or run_cleanup",
		"doubt":           "What speaks against the badge, or is missing for it; shown beside it, never instead",
		"evidence_age_ms": "How old the evidence is; null where no session is open",
		"failures":        "Sessions that failed in a row",
		"limits":          "What it may use",
		"loop":            "fairlead: we run its sessions; foreign: it runs them itself",
		"note":            "Why desired_state was set",
		"presence":        "Status of the document that is visible under its name; of the agent that leads the team: lead; empty where it has none",
		"removed":         "It is configured no more, and still runs",
		"retry_at":        "When the next session is tried, after failures",
		"session":         "The session that is open",
		"set_by":          "Who set desired_state: human or agent",
		"timestamp":       "When the wish was written",
		"turn":            "Channel to its state there",
		"usage_today":     "What it said it used on this day, UTC",
		"waiting_behind":  "Who holds the agent's session",
	},
	"TeamView": {
		"agents":    "In the order of fairlead.yaml",
		"head":      "The sequence as of which this is true",
		"hold":      "Nothing starts until release",
		"hold_note": "Why",
		"stopping":  "The daemon is going: nothing new starts",
		"team":      "Its name",
	},
	"SessionView": {
		"ending": "Why it was asked to end",
		"id":     "AGENT-NUMBER",
		"kind":   "session, cleanup or foreign",
		"phase":  "opened: in the journal; running: its process was seen",
		"pid":    "Of the agent's process; 0 where there is none yet",
	},
	"WhyView": {
		"sessions": "Newest first, the open one included; 50 at most",
		"verdict":  "One sentence",
	},
	"Evidence": {
		"age_ms": "How long ago that was",
		"at":     "When it was seen",
		"holds":  "It speaks for the status, not against it",
		"source": "Who saw it: journal, file, holder, driver, limits",
		"what":   "In words",
	},
	"PastSession": {
		"bytes":   "Of output",
		"outcome": "ok, failed, lost, withdrawn, interrupted; empty while it is open",
		"why":     "In words",
	},
	"LimitsView": {
		"session": "Wall-clock time for one session; empty: none",
	},
	"Row": {
		"do":    "What is done on the way, in order",
		"event": "What happens",
		"from":  "In which state",
		"id":    "As changes in the journal name it",
		"to":    "The state afterwards",
		"why":   "The reason, where the row does not explain itself",
	},
	"ChannelView": {
		"agents": "Its members: in the order of fairlead.yaml, then the others by name",
		"name":   "As in fairlead.yaml",
	},
	"AsideView": {
		"agent":    "Who answers",
		"deadline": "When its time is over; null: it stands still",
		"message":  "The number of the person's message",
	},
	"MemberView": {
		"connected": "It is there, enabled or not",
		"disabled":  "A person took it out of all turns, until it is enabled",
	},
	"OpenMessage": {
		"by": "Who said it",
		"n":  "Its number in the channel",
	},
	"ChannelEntry": {
		"agent":   "Of moved: who",
		"from":    "Of moved: its state before",
		"row":     "Of moved: the rule, as in the journal",
		"to":      "Of moved: its state afterwards",
		"trigger": "Of moved: what happened",
	},
	"ChannelPage": {
		"entries": "Oldest first; those of one seq are never parted",
	},
	"Spoken": {
		"n":   "Its number in the channel",
		"seq": "Its change in the journal; it is durable",
	},
	"CrewView": {
		"head": "The sequence as of which this is true",
		"lead": "Who says so",
	},
	"DocumentView": {
		"color":     "As `#rrggbb`; it is the agent's own word, so check it",
		"createdAt": "When its placeholder was made; UTC, milliseconds",
		"gender":    "In its own word",
	},
	"FaceView": {
		"eyes":  "One word; what is not known is drawn somehow",
		"mouth": "The same",
	},
	"Message": {
		"speaker": "Whose words they are",
	},
	"TranscriptPage": {
		"messages": "Oldest first; those of one seq are never parted",
		"head":     "The sequence as of which this is true",
	},
	"Ranking": {
		"best":      "Who takes over; empty: nobody's description fits",
		"reason":    "Why, or why nobody",
		"scores":    "The best first; only those with a word in common",
		"terms":     "The words that were looked for",
		"threshold": "Whoever takes over needs so much",
	},
	"Candidate": {
		"score": "The sum of its terms",
		"terms": "The heaviest first",
	},
	"Term": {
		"word": "As the text spells it",
	},
	"Rules": {
		"can_execute":    "`*`: every program; else information is gathered, and nothing more",
		"can_write":      "Globs, of names or of paths, and the seed's two phrases",
		"cannot_execute": "Whatever can_execute says",
		"cannot_write":   "Whatever can_write says",
	},
	"ErrandView": {
		"agent":    "Whose errand it is",
		"channel":  "Where",
		"deadline": "When the turn runs out; null: it does not, or it is no turn",
		"n":        "Which one it is among those that may come more than once in a turn; the key has it",
	},
}
