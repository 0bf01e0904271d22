package sim

// ofQuestions are faults in what becomes of what agents ask, and of providers that take no more.
var ofQuestions = []mutant{
	{
		breaks: "an answer is noted as told, and nobody tells it",
		file:   "engine/questiontell.go", old: "err := answerWith(ctx, conv, q.Ask, q.Option)", new: "_, err := conv, error(nil)",
	},
	{
		breaks: "an answer waits until somebody asks for it",
		file:   "engine/errands.go", old: "	e.answersOf(m, a)\n", new: "",
	},
	{
		breaks: "an agent is started while its provider takes nothing",
		file:   "team/limited.go", old: "return a.Limited != nil && !a.Limited.Until.IsZero()", new: "return false",
	},
	{
		breaks: "what a session was denied does not stand in its result",
		file:   "engine/follow.go", old: "joined(what.Why, denied, past)", new: "joined(what.Why, past)",
	},
	{
		breaks: "a question that its program takes back waits on",
		file:   "engine/questionear.go", old: "	case driver.PermissionWithdrawn:\n		l.also", new: "	case driver.PermissionWithdrawn:\n		_",
	},
}
