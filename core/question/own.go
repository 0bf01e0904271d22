package question

import "fmt"

// OrderAsk is the id of the question about an order by file, in place of a program's: the agent, the desired state that is
// asked for, and the number of the one in force. So the same order is asked about once in a session.
func OrderAsk(agent, word string, inForce uint64) string {
	return fmt.Sprintf("order/%s/%s/%d", agent, word, inForce)
}

// OrderByFile asks a person about an order that a session, its own or another's, can have written into an agent's agent_state.json (SPEC
// X10). There are at most three open ones for an agent, one for each desired state that asks for work, so no other limit counts.
func OrderByFile(agent, session, word, inForce string, n uint64) Ask {
	return Ask{Question: Question{
		Kind: Permission, Agent: agent, Session: session, Ask: OrderAsk(agent, word, n), Order: word,
		What: fmt.Sprintf("agent_state.json asks for %s; %s is in force", word, inForce),
		Why:  "it was written while " + session + " ran, which can write that file. Until you answer, the file says what is in force",
		Options: []Option{
			{ID: "yes", Kind: "allow_once", Label: "order " + word},
			{ID: "no", Kind: "reject_once", Label: "keep what is in force"},
		},
	}}
}

// ToolNetwork is the tool of a question whether a session may reach a host.
const ToolNetwork = "Network"

// ReachHost asks a person whether a session may reach a host (NAME, or NAME:PORT) of the network. Its program does not wait for the
// answer: the attempt was refused, and the answer is for the next one. due is false while such a question is open, its answer is on
// its way, or the session was denied this host: a program that tries again and again asks once.
func (b *Questions) ReachHost(agent, session, host string) (ask Ask, due bool) {
	for _, q := range b.Questions {
		if q.Session != session || q.Host != host {
			continue
		}
		if !q.Over() || q.State == Delivered && !q.Allow {
			return Ask{}, false
		}
	}
	return Ask{Question: Question{
		Kind: Permission, Agent: agent, Session: session, Ask: fmt.Sprintf("network/%s/%d", host, b.Asked+1), Host: host,
		Tool: ToolNetwork, Call: host, Key: host,
		What: "reach " + host,
		Why:  "`network` of " + agent + " does not name it. The attempt was refused; your answer is for the next one. What a host takes, it can keep",
		Options: []Option{
			{ID: "yes", Kind: "allow_once", Label: "let it reach " + host},
			{ID: "no", Kind: "reject_once", Label: "keep it from " + host},
		},
	}}, true
}

// HostsGranted are the hosts (NAME, or NAME:PORT) that saved answers allow to a session.
func (b *Questions) HostsGranted(agent, session string) (hosts []string) {
	for _, s := range b.List() {
		if s.Tool == ToolNetwork && s.Allow && s.Agent == agent && (s.Session == "" || s.Session == session) {
			hosts = append(hosts, s.Key)
		}
	}
	return hosts
}
