package claudehook

import (
	"bytes"
	"encoding/json"
	"io"
)

// Exit codes for the program: 2 blocks; any other except 0 is shown to the user and does not block.
const (
	codePass  = 0
	codeFault = 1
	codeBlock = 2
)

// Answer is a hook's result. The zero value says nothing, so the program does what it would do without the
// hook.
type Answer struct {
	Out  []byte // standard output: one JSON object, or nothing
	Err  string // standard error, without a newline
	Code int    // exit code
}

// Write writes an answer to the streams and returns the exit code.
func (a Answer) Write(out, errs io.Writer) int {
	if len(a.Out) > 0 {
		if _, err := out.Write(append(a.Out, '\n')); err != nil { // the denial was not delivered
			_, _ = io.WriteString(errs, "fairlead: send the decision to the program: "+err.Error()+"\n")
			return codeBlock
		}
	}
	if a.Err != "" {
		_, _ = io.WriteString(errs, "fairlead: "+a.Err+"\n")
	}
	return a.Code
}

// block is a failure where letting the call through would be wrong.
func block(text string) Answer { return Answer{Err: text, Code: codeBlock} }

// said is the part of an answer that is an object, in the documented order.
type said struct {
	Decision string    `json:"decision,omitempty"` // block: of a prompt, or of what a tool has done
	Reason   string    `json:"reason,omitempty"`
	Message  string    `json:"systemMessage,omitempty"` // for the user
	Specific *specific `json:"hookSpecificOutput,omitempty"`
}

type specific struct {
	Event    string          `json:"hookEventName"`
	Decision string          `json:"permissionDecision,omitempty"`
	Reason   string          `json:"permissionDecisionReason,omitempty"`
	Updated  json.RawMessage `json:"updatedInput,omitempty"`
	Context  string          `json:"additionalContext,omitempty"`
}

func say(s said) Answer {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("claude: an answer does not encode as JSON: " + err.Error())
	}
	return Answer{Out: bytes.TrimSpace(text.Bytes())}
}

// deny denies a tool call, with a reason for the model.
func deny(reason string) Answer {
	return say(said{Specific: &specific{Event: PreToolUse, Decision: "deny", Reason: reason}})
}

// refusePrompt erases a prompt, with a reason for the user.
func refusePrompt(reason string) Answer { return say(said{Decision: "block", Reason: reason}) }

// tell adds text to the model's context, and shows the user a line.
func tell(event, context, message string) Answer {
	return say(said{Message: message, Specific: &specific{Event: event, Context: context}})
}
