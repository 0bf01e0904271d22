// Package script is the built-in agent: it plays a file of instructions for real.
//
// Think of a pianola. The roll (a YAML file) says which keys go down and when; the
// piano is real, and so is the music: files of the workspace change, commands run,
// commits are made, processes are left behind, the player can stumble, lie, hang
// or drop dead. Who listens cannot tell it from a pianist by the sound. So
// everything works with no account and no key, and everything that can go wrong
// with an agent can be made to go wrong, again and again in the same way.
//
// # The file
//
//	description: writes a little every time
//	seed: 7              # of the random choices; the same session draws the same lots
//	pace: 300ms          # rest after each step, so that people can follow
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
//	turn:                # what a talk in channels plays; without it, a session like any other
//	  - repeat:
//	      times: 1000
//	      steps:
//	        - expect_prompt             # {prompt} is all that it is told for this turn
//	        - say: "I have read it. TURN_COMPLETE"
//	lead:                # what a session plays that leads the team; without it, what a talk does
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
// A script has either sessions or steps; steps alone are one session that is played
// every time. A session without a name may be just its list of steps. With
// `order: random` the session is drawn; with `stubborn: true` SIGTERM is ignored.
//
// # The steps
//
// A step is one verb. `verb: value` is short for a mapping with the option named
// first; the other options stand in that mapping or beside the verb.
//
//	say            text, chunk (characters in a piece; a word without it), delay (between pieces)
//	think          the same, as a thought
//	write          file, content
//	append         file, content
//	edit           file, replace (must occur), with, all
//	run            command (for sh), timeout (10m), tries (1), delay (between tries), may_fail, quiet, says
//	               (what it prints is the agent's own words: it counts in a channel, markers too)
//	sleep          time: 2s, or 1s..3s to draw it
//	usage          input_tokens, output_tokens, cost_usd: what was used since the last report
//	fail           message, code (1): ends the session
//	crash          signal (SIGKILL): dies by it, saying nothing
//	spawn          command, mode (child, setsid, double_fork), keeps_output: left running
//	count          lines, rate (a second), ledger (a file: each line after it was written, synced)
//	emit           bytes (that many), base64, text: raw output, no line's end added
//	hang           why, deaf (nothing but SIGKILL ends it)
//	ask            question, tool, args (what the tool is to be called with: names and texts), options,
//	               timeout, allowed (steps), denied (steps)
//	expect_prompt  containing, timeout: takes the next prompt; the one of the start is the first;
//	               where none lies there, it tells that it listens and waits; where nobody can
//	               say any more, the play is completed
//	on             prompt (a mapping: what it may contain, and steps for that), else (steps): the first
//	               case that is in {prompt} is played
//	repeat         times, steps
//	one_of         choices: a list of lists of steps; one is drawn
//
// Every step can be guarded: `every: 3` (sessions 3, 6, 9, …), `chance: 0.2`.
//
// In texts, file names and commands {name} {session} {n} {kind} {attempt} {time} {i}
// are filled in ({i}: the round of a repeat); in texts also {prompt} and {answer}.
// Those two are somebody else's words and no part of commands or file names: a
// command finds them in the variables PROMPT and ANSWER (beside NAME, SESSION, N and
// KIND). Other braces stay as they are, and so does ${…}.
//
// {outputs} is the folder for what is made in a conversation of a session (FAIRLEAD_OUTPUTS): a file
// whose name begins with it lies there. All other files are named from the workspace on and
// stay in it, also where links lead out;
// .git, .fairlead and .claude are out of bounds. What `run` and `spawn` do is the
// script's own business.
//
// # The protocol
//
// It is that of package speech. Output is a line for each thing, in JSON; type is a driver.FactKind. A line that
// does not begin with a brace is something said.
//
//	{"type":"said","text":"hello","part":true,"tool":"run"}
//	{"type":"usage_reported","input_tokens":1200,"output_tokens":80,"cost_usd":0.004}
//	{"type":"tool_called","tool":"run","text":"go test","args":{"command":"go test"}}
//	{"type":"permission_asked","id":"ask-1","tool":"git_push","text":"May I push?","options":[{"id":"allow","kind":"allow_once"}]}
//	{"type":"permission_answered","id":"ask-1","text":"allow"}
//	{"type":"listening","input":120}
//	{"type":"stopped","ok":true,"reason":"completed"}
//
// Listening comes once for each time that a prompt is waited for: all that was told
// in the first so many bytes of input is answered. The last one is the terminal
// event; a session without it has failed. Its reasons are completed, failed,
// cancelled (an order) and terminated (SIGTERM). Standard input takes orders, one in
// a line:
//
//	{"type":"start","text":"the first prompt"}     with the start of the process
//	{"type":"prompt","text":"and another thing"}
//	{"type":"answer","id":"ask-1","option":"allow"}
//	{"type":"cancel"}
//
// Cancel ends a sleep, a hang or a command at once. SIGTERM lets a command finish
// for 5 s more, cuts all waiting short, and then the session stops.
//
// The one promise: the same script, seed and session do the same steps, whoever
// plays them and whenever.
package script
