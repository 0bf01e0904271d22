// Package codex drives `codex exec --json`, a program that is started again for every prompt. The
// thread ID connects the processes: each further process resumes the thread, so that the session
// appears as one conversation.
//
//	codex exec --json … -                the first prompt, on standard input
//	codex exec resume --json … ID -      each further one
//
//	──▶ {"type":"thread.started","thread_id":…}          the number
//	──▶ {"type":"item.started","item":{…}}               a command, a change of files, a call of a tool
//	──▶ {"type":"item.completed","item":{…}}             words, thoughts, results
//	──▶ {"type":"turn.completed","usage":{…}}            the end; its tokens are a total of the whole thread
//	──▶ {"type":"turn.failed","error":{"message":…}}     the other end
//
// codex asks no permission. Its sandbox restricts it (the mode: read-only, workspace-write or
// danger-full-access), and actions that the sandbox denies do not appear in its output. The reported
// conversation says so. Measured with 0.169.0. The source of the program is the only documentation
// of `--json`, so the decoders are tolerant.
//
// The one promise: an answer has ended only when codex has said so, and no token is counted twice, however
// many processes a conversation takes.
package codex
