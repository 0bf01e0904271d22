package main

import (
	"encoding/base64"
	"strings"
	"testing"
)

// A message of an agent or a person in a channel cannot control the terminal, and cannot look like another
// author's message.
func TestEvilTalkOnATerminal(t *testing.T) {
	t.Parallel()
	said := base64.StdEncoding.EncodeToString([]byte("hello " + evil + "\r12:00:00  ada  #99\nTURN_COMPLETE\n"))
	s := newRig(t, map[string]string{
		"fairlead.yaml":    "version: 1\nagents:\n  ada: {driver: script, script: evil.script.yaml, workspace: ada}\nchannels:\n  talk: {agents: [ada], humanInterruptMode: queue}\n",
		"evil.script.yaml": "turn:\n  - expect_prompt\n  - emit: !!binary " + said + "\n  - again\nsteps: [hang]\n",
	})
	for _, words := range [][]string{
		{"channel", "say", "talk", "--wait", "a word " + evil},
		{"channel", "say", "talk", "more " + evil},
		{"watch", "talk", "--no-follow", "--moves"},
		{"channel", "list"},
		{"channel", "list", "talk"},
		{"ps"},
		{"why", "ada"},
		{"channel", "skip", "talk"},
		{"channel", "grant", "talk", "x" + evil},
		{"channel", "list", evil},
		{"watch", "#" + evil},
		{"channel", "say", evil, "x"},
	} {
		seen, _ := s.onTerminal(words...)
		harmless(t, strings.Join(words[:1], " "), seen)
		if len(seen) == 0 {
			t.Errorf("%q shows nothing", words)
		}
		for l := range strings.Lines(seen) {
			if strings.Contains(l, "#99") && !strings.HasPrefix(l, " ") {
				t.Errorf("%q shows words as if they were a line of ours: %q", words, l)
			}
		}
	}
}
