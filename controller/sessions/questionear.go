package sessions

const (
	PastShown = 5
	NotAsked  = "it did not ask for what its rules deny: "
)
