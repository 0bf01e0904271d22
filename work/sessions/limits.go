package sessions

// Upper limits of one usage report. A larger report is wrong, and an overflowing sum would disable
// the agent's limit.
const (
	TokensReportMax = int64(1e9)
	TokensSumMax    = int64(1e15)
	CostReportMax   = 1e5 // USD
	TextBytesMax    = 500 // bytes of an agent's own text about its end
)

// PastShown is how many of the calls that a program made without asking are listed for a session; further
// ones are only counted.
const PastShown = 5

// NotAsked begins the text about calls that a program made without asking.
const NotAsked = "it did not ask for what its rules deny: "
