// Package loop is the one goroutine that changes the team.
//
// Callers submit requests to a queue. The loop takes all requests that wait (a batch), decides each
// of them on the team in memory, appends the changes of the whole batch to the journal with one sync,
// and only then notifies watchers, lets the controllers start actions, and answers the callers:
//
//	 person, file, process, deadline
//	            |
//	          queue                    256 requests; then callers wait
//	            |
//	decide      team.Decide            pure: changes, or a refusal
//	apply       team.Apply             in memory, visible to the loop only
//	append      journal.Append         one sync; an error stops the loop
//	show        Hooks.OnBatch          controllers take in the changes; watchers get them
//	act         Hooks.Act              controllers start what the new state asks for
//	answer      callers
//
// Controllers see the loop through four methods: Submit changes the team, View reads it, Go runs work
// beside the loop, and Register adds hooks that run in the loop. Actions are derived from the state,
// so a crash between the append and the action loses nothing: the next start derives them again.
// Timers are data: a controller says when its next deadline is, and the loop asks for the events that
// are due. No lock guards the team.
//
// The one promise: nothing is answered, shown or started before it is in the journal and synced, and
// requests are decided in the order in which the queue received them.
package loop
