// Package script is the built-in agent: it executes a file of instructions.
//
// The instructions (a YAML file) have real effects: files of the workspace change, commands run,
// commits are made, processes are left behind, and the agent can fail, hang or crash. To Fairlead it
// looks like any other agent program. Therefore everything works without an account or a key, and
// every failure of an agent can be reproduced.
//
// # The file
//
//	description: writes a little every time
//	seed: 7              # of the random choices; the same session makes the same choices
//	pace: 300ms          # pause after each step, so that people can follow
//	sessions:            # played in turn: session coder-1 the first, coder-2 the second, …
//	  - name: feature
//	    steps:
//	      - say: "Session {n}: I add a greeting."
//	        delay: 40ms                 # word by word
//	      - write: greet.sh
//	        content: |
//	          echo "hello from {session}"
//	      - run: git add greet.sh && git commit -qm "Greet from session {n}"
//	        tries: 5                    # another agent may hold git's lock
//	      - usage: {input_tokens: 1200, output_tokens: 80, cost_usd: 0.004}
//	  - name: doubt
//	    steps:
//	      - ask: May I push?
//	        tool: git_push
//	        allowed: [{say: "I push."}]
//	        denied: [{say: "Then not."}]
//	      - {fail: "the network is down", chance: 0.2}
//	cleanup:             # what a cleanup session plays (seed 000, run_cleanup)
//	  - run: rm -f *.tmp
//	turn:                # steps for turns in channels; without it, a session like any other
//	  - repeat:
//	      times: 1000
//	      steps:
//	        - expect_prompt             # {prompt} is the whole prompt of this turn
//	        - say: "I have read it. TURN_COMPLETE"
//	lead:                # steps of a lead session; without it, as for turns
//	  - repeat:
//	      times: 1000
//	      steps:
//	        - expect_prompt
//	        - on:
//	            prompt:
//	              "[WAKE AGENTS]":
//	                - write: told.xml          # whole, however long it is
//	                  content: "{prompt}"
//	                - run: sh wake.sh told.xml # says hello for each, and who is alive then
//	                  says: true
//	            else:
//	              - say: '[AGENT_STATUS] {"agents":[]}'
//
// A script has either sessions or steps; steps alone are one session that is played every time. A
// session without a name may be just its list of steps. With `order: random` the session is chosen
// at random; with `stubborn: true` SIGTERM is ignored.
//
// # The steps
//
// A step is one verb. `verb: value` is short for a mapping with the option that is listed first; the
// other options are in that mapping or beside the verb.
//
//	say            text, chunk (characters in a piece; a word without it), delay (between pieces)
//	think          the same, as a thought
//	write          file, content
//	append         file, content
//	edit           file, replace (must occur), with, all
//	run            command (for sh), timeout (10m), tries (1), delay (between tries), may_fail, quiet, says
//	               (what it prints is the agent's own words: it counts in a channel, markers too)
//	sleep          time: 2s, or 1s..3s for a random time
//	usage          input_tokens, output_tokens, cost_usd, model: what was used since the last report
//	fail           message, code (1): ends the session
//	crash          signal (SIGKILL): ends by this signal without a terminal event
//	spawn          command, mode (child, setsid, double_fork), keeps_output: left running
//	count          lines, rate (a second), ledger (a file: each line after it was written, synced)
//	emit           bytes (a number), base64, text: raw output, no line ending added
//	hang           why, deaf (nothing but SIGKILL ends it)
//	ask            question, tool, args (arguments of the tool: names and texts), options,
//	               timeout, allowed (steps), denied (steps)
//	expect_prompt  containing, timeout: reads the next prompt; the prompt of the start is the first;
//	               if none is queued, it reports listening and waits; if no more prompts can
//	               come, the play is completed
//	on             prompt (a mapping from texts that it may contain to steps), else (steps): plays the
//	               first case that {prompt} contains
//	repeat         times, steps
//	one_of         choices: a list of lists of steps; one is chosen at random
//
// Every step can be guarded: `every: 3` (sessions 3, 6, 9, …), `chance: 0.2`.
//
// In texts, file names and commands {name} {session} {n} {kind} {attempt} {time} {i} are replaced
// ({i}: the round of a repeat); in texts also {prompt} and {answer}. Those two are untrusted and are
// not replaced in commands or file names: a command finds them in the variables PROMPT and ANSWER
// (beside NAME, SESSION, N and KIND). Other braces stay as they are, and so does ${…}.
//
// {outputs} is the conversation's output folder (FAIRLEAD_OUTPUTS): a file whose name begins with it
// is written there. All other file names are relative to the workspace and must stay in it, also
// after symbolic links are resolved; .git, .fairlead and .claude are forbidden. `run` and `spawn`
// are not restricted.
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
// The one promise: the same script, seed and session always execute the same steps.
package script
