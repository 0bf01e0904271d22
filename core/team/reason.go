package team

// EndReason is the code for why a session was asked to end. Decisions compare it; people read
// the sentence that ending.words makes of it.
type EndReason string

const (
	EndReported     EndReason = "reported"          // the step's report was read
	EndAttemptOver  EndReason = "attempt_over"      // the step's attempt is over; the detail says how
	EndCancelled    EndReason = "cancelled"         // a person cancelled the step; the detail names the person
	EndShutdown     EndReason = "shutdown"          // Fairlead was asked to stop
	EndLimit        EndReason = "limit"             // the detail names the limit
	EndByPerson     EndReason = "by_person"         // the detail names the person
	EndSleep        EndReason = "put_to_sleep"      // the lead's session; the detail names the person
	EndIdle         EndReason = "nothing_to_tell"   // no channel has a message for the agent
	EndNotLead      EndReason = "not_lead"          // another agent leads the crew now
	EndDisabled     EndReason = "disabled"          // the agent is disabled in channels
	EndConversation EndReason = "conversation_over" // the dispatch conversation that it worked for is over
	EndUnconfigured EndReason = "not_configured"    // its program left fairlead.yaml
)

// ending is a reason with the name that its sentence needs. The zero value is no reason.
type ending struct {
	reason EndReason
	detail string
}

// words is the sentence for a reason. Only people read it.
func (e ending) words() string {
	switch e.reason {
	case EndReported:
		return "its report was read"
	case EndAttemptOver, EndCancelled:
		return e.detail
	case EndShutdown:
		return stopWords
	case EndLimit:
		return limitWords + e.detail
	case EndByPerson:
		return "ended by " + e.detail
	case EndSleep:
		return "put to sleep by " + e.detail
	case EndIdle:
		return channelIdleWords
	case EndNotLead:
		return "it no longer leads the team"
	case EndDisabled:
		return "it is disabled"
	case EndConversation:
		return dispatchOverWords
	case EndUnconfigured:
		return "its program is no longer configured"
	default:
		return string(e.reason)
	}
}
