package sim

const stream = "./engine/journal/jetstream"

// ofStream are faults in the journal of many hosts.
var ofStream = []mutant{
	{
		breaks: "an append looks for another id than its messages have",
		file:   "engine/journal/jetstream/remote.go", old: "	a := NewAttempt(name.String(), last)\n",
		new: "	a := NewAttempt(newID().String(), last)\n",
		pkg: stream, run: "TestAnswers",
	},
	{
		breaks: "an append does not say which end it follows",
		file:   "engine/journal/jetstream/remote.go", old: "		if i == 0 {\n", new: "		if i == 0 && last == 0 {\n",
		pkg: stream, run: "TestEqualBatches",
	},
	{
		breaks: "error 10071 is taken for proof that another batch is stored",
		file:   "engine/journal/jetstream/remote.go", old: "			step = a.Answered(answer, now.Sub(mark))\n",
		new: "			if step = a.Answered(answer, now.Sub(mark)); answer == WrongLast {\n				return \"\", said\n			}\n",
		pkg: stream, run: "TestAnswers",
	},
	{
		breaks: "the mirror does not compare the hash",
		file:   "engine/journal/sqlite/append.go", old: "	if link != nil && *link != hash {", new: "	if link != nil && seq == 0 {",
		pkg: stream, run: "TestForgedMessages",
	},
	{
		breaks: "the checksum of a message is ignored",
		file:   "engine/journal/jetstream/message.go", old: "	case m.Sum != m.sum(body):",
		new: "	case m.sum(body) == \"\":",
		pkg: stream, run: "TestFlippedMessages",
	},
	{
		breaks: "expectations ignore the other appends of the same message",
		file:   "engine/journal/jetstream/writer.go", old: "		if failing(r.expect, seq, version) != nil {\n",
		new: "		if failing(r.expect, seq, version) != nil && false {\n",
		pkg: stream, run: "TestSuite/servers=1/ExpectationsUnderContention",
	},
	{
		breaks: "a stream that ends before the mirror is followed",
		file:   "engine/journal/jetstream/remote.go", old: "	if b.last() < seq {\n", new: "	if b.last() < seq && seq == 0 {\n",
		pkg: stream, run: "TestShortStream",
	},
}
