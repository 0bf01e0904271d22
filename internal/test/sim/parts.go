package sim

// The parts of a world, by what they concern.
type (
	// crewWorld plays and records the crew.
	crewWorld struct{ *world }
	// documentWorld keeps the documents of the crew.
	documentWorld struct{ *world }
	// channelWorld plays and records channels.
	channelWorld struct{ *world }
	// checks compares what the engine does with the promises.
	checks struct{ *world }
	// fileWorld keeps the state files of the agents, and plays questions.
	fileWorld struct{ *world }
)
