package sim

// ofQuestions are faults in questions of agents and in rate limits of providers.
var ofQuestions = []mutant{
	{
		breaks: "an answer is recorded as delivered but is not delivered",
		file:   "work/questions/questiontell.go", old: "err := AnswerWith(ctx, conv, q.Ask, q.Option)",
		new: "_, err := conv, error(nil)",
	},
	{
		breaks: "an answer is not delivered when it is given",
		file:   "work/questions/due.go", old: "					c.answersOf(m, a)\n",
		new: "",
	},
	{
		breaks: "an agent starts during its provider's rate limit",
		file:   "core/team/limited.go", old: "return a.Limited.Waits()", new: "return false",
	},
	{
		breaks: "denied permissions are missing from the result of a session",
		file:   "work/listen/follow.go", old: "sessions.Joined(what.Why, denied, past)",
		new: "sessions.Joined(what.Why, past)",
	},
	{
		breaks: "a question that its program withdrew stays open",
		file:   "work/listen/question.go", old: "	case driver.PermissionWithdrawn:\n		l.also",
		new: "	case driver.PermissionWithdrawn:\n		_",
	},
}
