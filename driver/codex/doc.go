// Package codex drives `codex exec --json`: a program that is started anew for every prompt.
//
// Think of a correspondence by letters. Each letter is carried by a messenger of its own, who
// brings the answer back and goes; what makes a conversation of it is the number at the head of the
// paper. We keep the number and send the next messenger with it; whoever reads along sees one
// conversation.
//
//	codex exec --json … -                the first prompt, on standard input
//	codex exec resume --json … ID -      each further one
//
//	──▶ {"type":"thread.started","thread_id":…}          the number
//	──▶ {"type":"item.started","item":{…}}               a command, a change of files, a call of a tool
//	──▶ {"type":"item.completed","item":{…}}             words, thoughts, what became of it
//	──▶ {"type":"turn.completed","usage":{…}}            the end; its tokens are a total of the whole thread
//	──▶ {"type":"turn.failed","error":{"message":…}}     the other end
//
// Nobody is asked anything: what holds codex is its sandbox (the mode: read-only, workspace-write or
// danger-full-access), and what its sandbox refuses does not appear among its lines. All this is
// said in what is told of the conversation. Measured with 0.169.0; of `--json` the source of the
// program is the documentation, so the decoders are tolerant.
//
// The one promise: an answer has ended only when codex has said so, and no token is counted twice,
// however many processes a conversation takes.
package codex
