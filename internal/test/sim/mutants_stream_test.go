package sim

const stream = "./journal/jetstream"

// ofStream are faults in the journal of many hosts.
var ofStream = []mutant{
	{
		breaks: "an append looks for another id than its messages have",
		file:   "journal/jetstream/remote.go", old: "	a := attempt.New(name.String(), last)\n", new: "	a := attempt.New(newID().String(), last)\n",
		pkg: stream, run: "TestAnswers",
	},
	{
		breaks: "an append does not say which end it follows",
		file:   "journal/jetstream/remote.go", old: "		if i == 0 {\n", new: "		if i == 0 && last == 0 {\n",
		pkg: stream, run: "TestEqualBatches",
	},
	{
		breaks: "error 10071 is taken for proof that another batch is stored",
		file:   "journal/jetstream/remote.go", old: "			step = a.Answered(answer, now.Sub(mark))\n",
		new: "			if step = a.Answered(answer, now.Sub(mark)); answer == attempt.WrongLast {\n				return \"\", said\n			}\n",
		pkg: stream, run: "TestAnswers",
	},
	{
		breaks: "the mirror does not compare the hash",
		file:   "journal/sqlite/append.go", old: "	if j.link != nil && *j.link != t.hash {", new: "	if j.link != nil && t.seq == 0 {",
		pkg: stream, run: "TestForgedMessages",
	},
	{
		breaks: "the checksum of a message is ignored",
		file:   "journal/jetstream/message.go", old: "	if binary.BigEndian.Uint32(raw[crcAt:]) != checksum(raw) {", new: "	if checksum(raw) == 0 {",
		pkg: stream, run: "TestFlippedMessages",
	},
	{
		breaks: "expectations ignore the other appends of the same message",
		file:   "journal/jetstream/writer.go", old: "		if failing(r.expect, seq, version) != nil {\n", new: "		if failing(r.expect, seq, version) != nil && false {\n",
		pkg: stream, run: "TestSuite/servers=1/ExpectationsUnderContention",
	},
	{
		breaks: "a stream that ends before the mirror is followed",
		file:   "journal/jetstream/remote.go", old: "	if b.last() < seq {\n", new: "	if b.last() < seq && seq == 0 {\n",
		pkg: stream, run: "TestShortStream",
	},
}
