// Package notify tells somebody who is not looking that he is waited for.
//
// A run comes to a step that asks people, and everything behind it stands still. The
// question lies in the inbox; whoever should answer it may be at lunch. So a notice goes
// out, once, to where he has said that he will see it: as JSON to an address of his (a
// webhook), or as a line in the corner of his screen (a desktop notice). Unless one of the
// two is configured nothing is sent, nothing is started and no network is touched.
//
//	question ──Tell──► queue ──► POST to the webhook   (a few tries, further and further apart)
//	               └─► queue ──► notify-send, osascript
//
// Each of the two has a queue and a goroutine, so that an address which hangs holds up
// neither the engine nor the screen. A notice that cannot be delivered is given up, and said
// so in the log: the question itself is in the inbox all the same, and nothing waits for
// the notice.
//
// # What is posted
//
//	{"kind":"step","run_id":"…","step_id":"…","workflow_name":"…","why":"…",
//	 "since":"2026-11-21T10:00:00.123456Z","manual_input_path":"…"}
//
// Of a question of an agent kind is permission, question or resume, agent says whose it is, why
// which one (q17), and run and step are empty but in a step's session. Nothing that an agent has
// said is in it.
//
// Any answer of 200 to 299 is a delivery, and what it says is not read. A notice can arrive
// twice, when an answer was lost on its way: run_id, step_id, agent, why and since say which it is.
//
// # Whom it trusts
//
// Nobody. Names of workflows and steps are shown on a screen, so what could move a cursor,
// turn text round or be taken for markup is gone from them. A webhook may send us on to its
// own host alone. Its address is a secret: such addresses hold their token in the path.
//
// The one promise: the address never appears in an error, in a log or on a screen; of it,
// the name of the host is all that is ever said.
package notify
