package session

// Reasons for the end of an agent's program that decisions depend on. Every driver reports these
// words. All other reasons are only displayed.
const (
	ReasonRateLimited      = "rate_limited"      // the provider's rate limit was reached: not a failure
	ReasonNotResumed       = "not_resumed"       // the program does not know the conversation to resume; nothing was done
	ReasonProcessConflict  = "process_conflict"  // a background service of the program has the conversation open: it must not run twice
	ReasonContextExhausted = "context_exhausted" // the conversation is too long for its model: resuming it does not help
	ReasonNotSignedIn      = "not_signed_in"     // the provider rejects the credentials: retrying does not help, a person has to sign in
	ReasonNoAnswer         = "no_answer"         // an answer without a text, a tool call or usage: nothing shows that a model has answered
	ReasonProviderError    = "provider_error"    // the answer consists of an error of the provider
	ReasonSameAnswer       = "same_answer"       // sessions in a row gave the same text within seconds, without a tool call or usage
	ReasonDied             = "died"              // the program ended during its work: its conversation can be resumed
)

// Unanswered reports whether a session that failed for this reason shows no sign of a model's answer. worked says whether
// the session has used anything or called a tool.
func Unanswered(reason string, worked bool) bool {
	switch reason {
	case ReasonNoAnswer, ReasonProviderError, ReasonSameAnswer: // reported only for an answer without a tool call and usage
		return true
	case ReasonNotSignedIn, ReasonRateLimited:
		return !worked
	}
	return false
}
