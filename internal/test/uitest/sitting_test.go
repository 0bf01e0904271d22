package uitest_test

import "github.com/fairlead-dev/fairlead/internal/test/uitest"

// fakeSitting is a session on the fake, in which everything happens as a test says.
func fakeSitting(fake *uitest.Fake) *uitest.Sitting {
	const name = "20261121_153005"
	fake.AddDesk(name, func(d *uitest.Desk) { d.Agents = uitest.SomeAgents() })
	agent := "fullstack-engineer"
	return &uitest.Sitting{
		Name: name, Input: "Write a hello world Python script", Agent: agent, File: "hello_world.py", Text: "Hello, World!",
		Deny: func() {
			fake.Deny(name, uitest.DispatchDenial{Tool: "Write", Call: "hello_world.py", Reason: "This requires writing *.py, which MAIN cannot do.", Delegate: agent, Capability: "write Python"})
		},
		Delegate: func() { fake.Delegate(name, agent, "Create hello_world.py", `matched "write" + "python"`) },
		Made:     func() { fake.Made(name, "hello_world.py", "print(\"Hello, World!\")\n") },
		Done:     func() { fake.TaskDone(name, "It is written.") },
		Respond:  func() { fake.Respond(name, "There you are.") },
		Other:    func(text string) { fake.Input(name, text) },
		Foreign:  func(words string) { fake.Foreign(name, "dance", words) },
		Refuse: func() string {
			fake.Refuse("input", name, "64 inputs wait already")
			return "64 inputs wait already"
		},
		Edit:     func(change func(*uitest.Desk)) { fake.EditDesk(name, change) },
		EditTalk: func(change func(*uitest.DispatchTalk)) { fake.EditTalk(name, change) },
	}
}
