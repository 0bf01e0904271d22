// Package notify notifies a person that something waits for them.
//
// A run that reaches a step for people stops there until someone answers in the inbox. Notify sends
// one notice about each question: as JSON to a webhook, or as a desktop notification. Without
// configuration nothing is sent, no program is started and no network is used.
//
//	question ──Tell──► queue ──► POST to the webhook   (a few tries, further and further apart)
//	               └─► queue ──► notify-send, osascript
//
// Each way has its own queue and goroutine, so that a slow address delays neither the engine nor
// the other way. A notice that cannot be delivered is dropped and logged; the question stays in the
// inbox in any case.
//
// # What is posted
//
//	{"kind":"step","run_id":"…","step_id":"…","workflow_name":"…","why":"…",
//	 "since":"2026-11-21T10:00:00.123456Z","manual_input_path":"…"}
//
// For an agent's question, kind is permission, question or resume, agent is the agent's name, why is
// the question's id (q17), and run_id and step_id are empty unless a step's session asks. Text by
// agents is never included.
//
// An answer of 200 to 299 counts as delivered; its content is ignored. A notice can arrive twice if
// an answer was lost. run_id, step_id, agent, why and since identify it.
//
// # Security
//
// Names of workflows and steps are untrusted and appear on a screen: control characters, characters
// that change the writing direction, and markup are removed. A webhook may redirect only within its
// own host. Its address is a secret, because such addresses hold a token in the path.
//
// The one promise: the address never appears in an error, a log or on a screen; only its host name
// does.
package notify
