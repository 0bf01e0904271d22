// Package notify delivers notices to people: on the desktop, as JSON to a webhook, and by services such
// as Slack, Discord, ntfy, Telegram and e-mail. It decides nothing; core/notice says what is due. Without
// configuration nothing is sent, no program is started and no network is used.
//
//	desktop     notify-send, osascript
//	https://…   POST to the webhook
//	slack://…   a process of this program, which sends with the library shoutrrr (see service)
//
// Each try ends after 10 or 20 seconds and says whether a further one makes sense.
//
// # What is posted
//
//	{"kind":"step","run_id":"…","step_id":"…","workflow_name":"…","why":"…",
//	 "since":"2026-11-21T10:00:00.123456Z","manual_input_path":"…","event":"needs_you","link":"…"}
//
// For an agent's question, kind is permission, question or resume, agent is the agent's name, why is
// the question's id (q17), and run_id and step_id are empty unless a step's session asks. For other events kind is
// the event. Output of agents is never included.
//
// An answer of 200 to 299 counts as delivered; its content is ignored. A notice can arrive twice if
// an answer was lost. event, run_id, step_id, agent, why and since identify it.
//
// # Security
//
// Names and titles are untrusted and appear on a screen: control characters, characters
// that change the writing direction, and markup are removed. A webhook may redirect only within its
// own host, a service not at all. An address is a secret, because such addresses hold a token.
//
// The one promise: the address never appears in an error, a log or on a screen; only its host name
// or its scheme does.
package notify
