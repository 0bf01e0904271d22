// Package script is the built-in agent: it plays a list of steps from a YAML file.
//
// To Fairlead it looks like any other agent program. Therefore everything works without an account or
// a key, and every failure of an agent can be reproduced. A step reports a fact, waits, or runs a
// command; what an agent has to decide, it decides in that command.
//
// # The file
//
//	description: writes a little every time
//	sessions:            # played in turn: session coder-1 the first, coder-2 the second, …
//	  - name: feature
//	    steps:
//	      - say: "Session {n}: I add a greeting."
//	        delay: 40ms                 # word by word
//	      - run: |
//	          echo "echo hello from $SESSION" > greet.sh
//	          git add greet.sh && git commit -qm "Greet from session $N"
//	      - usage: {input_tokens: 1200, output_tokens: 80, cost_usd: 0.004}
//	  - name: doubt
//	    steps:
//	      - ask: May I push?
//	        tool: git_push
//	      - run: if [ "$ANSWER" = allow ]; then echo "I push."; else echo "Then not."; fi
//	        says: true
//	      - fail: the network is down
//	cleanup:             # what a cleanup session plays (seed 000, run_cleanup)
//	  - run: rm -f *.tmp
//	turn:                # steps for turns in channels; without it, a session like any other
//	  - expect_prompt                   # {prompt} is the whole prompt of this turn
//	  - say: "I have read it. TURN_COMPLETE"
//	  - again
//	lead:                # steps of a lead session; without it, as for turns
//	  - expect_prompt
//	  - run: sh answer.sh               # reads the prompt on its standard input
//	    says: true
//	  - again
//
// A script has either sessions or steps; steps alone are one session that is played every time. A
// session without a name may be just its list of steps.
//
// # The steps
//
// A step is one verb with its options beside it.
//
//	say            a text; delay (between words)
//	think          the same, as a thought
//	usage          input_tokens, output_tokens, cost_usd, model: what was used since the last report
//	emit           raw output, no line ending added (!!binary for base64); times (1)
//	ask            a question; tool, args (arguments of the tool: names and texts), options, timeout
//	fail           a message; code (1): ends the session
//	crash          ends by SIGKILL without a terminal event
//	run            a command for sh, reported as a call of a tool. With says, what it prints is the agent's
//	               own words: it counts in a channel, markers too. With raw, it is the agent's output, as
//	               with emit. Neither is reported. A command that fails ends the session
//	sleep          a time: 2s
//	expect_prompt  reads the next prompt; the prompt of the start is the first; if none is queued, it
//	               reports listening and waits; if no more prompts can come, the play is completed
//	hang           waits until it is stopped
//	again          goes back to the expect_prompt before it
//
// In the texts of say, think, ask and fail {name} {session} {n} {kind} {attempt} {prompt} {answer} are
// replaced; other braces stay as they are. A command finds the same in the variables NAME, SESSION, N,
// KIND, ATTEMPT, PROMPT and ANSWER, and the whole prompt on its standard input: untrusted text never
// becomes part of the command. The folder of a conversation's outputs is FAIRLEAD_OUTPUTS.
//
// # The protocol
//
// The protocol is that of package speech. Output is one JSON object per line; type is a
// driver.FactKind. A line that does not begin with a brace is something said.
//
//	{"type":"said","text":"hello","part":true,"tool":"run"}
//	{"type":"usage_reported","input_tokens":1200,"output_tokens":80,"cost_usd":0.004}
//	{"type":"tool_called","tool":"run","text":"go test","args":{"command":"go test"}}
//	{"type":"permission_asked","id":"ask-1","tool":"git_push","text":"May I push?","options":[{"id":"allow","kind":"allow_once"}]}
//	{"type":"permission_answered","id":"ask-1","text":"allow"}
//	{"type":"text_read","id":"3","text":"use the v2 client"}
//	{"type":"listening","input":120}
//	{"type":"stopped","ok":true,"reason":"completed"}
//
// Listening is sent each time the script waits for a prompt: all prompts in the given number of
// input bytes have been answered. The last event is the terminal event; a session without it has
// failed. Its reasons are completed, failed, cancelled (an order) and terminated (SIGTERM). Standard
// input takes orders, one per line:
//
//	{"type":"start","text":"the first prompt"}     with the start of the process
//	{"type":"prompt","text":"and another thing"}
//	{"type":"steer","id":"3","text":"use the v2 client"}    read as a prompt, and confirmed by text_read
//	{"type":"answer","id":"ask-1","option":"allow"}
//	{"type":"cancel"}
//
// Cancel ends a sleep, a hang or a command immediately. SIGTERM ends all waiting, gives a running
// command 5 s to finish, and then stops the session.
//
// The one promise: the same script and session always play the same steps.
package script
