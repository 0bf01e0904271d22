package session

// Reasons for the end of an agent's program that decisions depend on. Every driver reports these
// words. All other reasons are only displayed.
const (
	ReasonRateLimited      = "rate_limited"      // the provider's rate limit was reached: not a failure
	ReasonNotResumed       = "not_resumed"       // the program does not know the conversation to resume; nothing was done
	ReasonHeldElsewhere    = "held_elsewhere"    // a background service of the program has the conversation open: it must not run twice
	ReasonContextExhausted = "context_exhausted" // the conversation is too long for its model: resuming it does not help
	ReasonNotSignedIn      = "not_signed_in"     // the provider rejects the credentials: retrying does not help, a person has to sign in
	ReasonDied             = "died"              // the program ended during its work: its conversation can be resumed
)
