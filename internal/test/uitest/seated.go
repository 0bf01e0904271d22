package uitest

import "time"

// SeatedName is the session that the pictures show.
const SeatedName = "20261121_153005"

// Seated is a team with sessions on an ordinary afternoon: the seed's example in one of them, with
// a denied write, and somebody at work.
func Seated() *Fake {
	f := Crew()
	at := time.Now().UTC().Add(-26 * time.Hour)
	f.mu.Lock()
	f.now = func() time.Time { at = at.Add(4 * time.Second); return at }
	f.mu.Unlock()
	f.AddDesk("20261120_141208", func(d *Desk) { d.Row.Host, d.Agents = "claude", SomeAgents() })
	f.Input("20261120_141208", "Which berths are free on Sunday?")
	f.Respond("20261120_141208", "Seven and nine.")
	f.EndDesk("20261120_141208")
	f.AddDesk("inbox-of-the-quay", func(d *Desk) {
		d.Row.Mode, d.Row.Phase, d.Row.State, d.Row.Host, d.Agents = "response", "queue", "QUEUE", "fairlead", SomeAgents()
	})
	f.mu.Lock()
	at = time.Now().UTC().Add(-9 * time.Minute)
	f.mu.Unlock()
	f.AddDesk(SeatedName, func(d *Desk) {
		d.Row.Host, d.Agents = "fairlead", SomeAgents()
		d.Layers = []DispatchLayer{
			{"rules", true, "what MAIN asks and calls is held against its permissions"},
			{"sandbox", true, "Landlock: MAIN reads everything, and writes only where it may"},
			{"check", true, "what changed on disk is looked at after each of its rounds"},
		}
	})
	f.Input(SeatedName, "Hello, what can you help with?")
	f.Respond(SeatedName, "I can help with planning, coordination, and various technical tasks.")
	f.Input(SeatedName, "Write a hello world Python script")
	f.Deny(SeatedName, DispatchDenial{
		Tool: "Write", Call: SeatedName + "/conversations/conv_002/outputs/hello_world.py", Capability: "writing Python",
		Reason: "This requires writing *.py, which MAIN cannot do: the rule *.py forbids it. Delegate to fullstack-engineer.", Delegate: "fullstack-engineer",
	})
	f.Delegate(SeatedName, "fullstack-engineer", "Create hello_world.py and run it to verify that it works.", `matched "write" + "python"`)
	f.Made(SeatedName, "hello_world.py", "#!/usr/bin/env python3\n\nprint(\"Hello, World!\")\n")
	f.TaskDone(SeatedName, "hello_world.py is written. It says:\n\n```\nHello, World!\n```")
	f.Respond(SeatedName, "The script is in outputs/hello_world.py, and it runs.")
	f.Input(SeatedName, "Thanks!")
	f.Respond(SeatedName, "You're welcome!")
	f.Input(SeatedName, "Write a Python web server that serves it, please")
	f.Deny(SeatedName, DispatchDenial{
		Tool: "Bash", Call: "python3 -m http.server 8000 & sleep 1; curl -s localhost:8000", Capability: "running programs",
		Reason: "This requires running python3, which MAIN cannot do: only information is gathered here. Delegate to fullstack-engineer.", Delegate: "fullstack-engineer",
	})
	f.Delegate(SeatedName, "fullstack-engineer", "Write a Python web server that serves hello_world.py, and try it.", `matched "write" + "python" + "servers"`)
	f.Made(SeatedName, "server.py", "import http.server\n")
	f.Input(SeatedName, "And then write release notes for it")
	f.mu.Lock()
	f.now = func() time.Time { return time.Now().UTC() }
	f.mu.Unlock()
	return f
}
