package codex

import (
	"encoding/json"

	"github.com/fairlead-dev/fairlead/driver/adapter"
)

// event is one line of `codex exec --json`.
type event struct {
	Type     string `json:"type"` // thread.started, turn.started, item.started, item.updated, item.completed, turn.completed, turn.failed, error
	ThreadID string `json:"thread_id"`
	Message  string `json:"message"` // error
	Error    fault  `json:"error"`   // turn.failed
	Usage    *usage `json:"usage"`
	Item     *item  `json:"item"`
}

// item is something that the agent says or does. IDs start at item_0 in every process.
type item struct {
	ID   string `json:"id"`
	Type string `json:"type"` // agent_message, reasoning, command_execution, file_change, mcp_tool_call, collab_tool_call, web_search, todo_list, plan, error

	Text    string `json:"text"`    // agent_message, reasoning, plan
	Message string `json:"message"` // error
	Status  string `json:"status"`  // in_progress, completed, failed, declined

	Command string   `json:"command"` // command_execution
	Output  string   `json:"aggregated_output"`
	Changes []change `json:"changes"` // file_change

	Server    string          `json:"server"` // mcp_tool_call
	Tool      string          `json:"tool"`   // mcp_tool_call, collab_tool_call
	Arguments json.RawMessage `json:"arguments"`
	Error     fault           `json:"error"`
	Result    struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
	} `json:"result"`

	Prompt string `json:"prompt"` // collab_tool_call
	Query  string `json:"query"`  // web_search

	Items []struct { // todo_list
		Text string `json:"text"`
	} `json:"items"`
}

type change struct {
	Path string `json:"path"`
	Kind string `json:"kind"` // add, update, delete
}

// fault is an error: an object with a message or, in older versions, a string.
type fault struct{ Message string }

// UnmarshalJSON accepts any value.
func (f *fault) UnmarshalJSON(b []byte) error {
	f.Message = ""
	var with struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(b, &f.Message) != nil && json.Unmarshal(b, &with) == nil {
		f.Message = with.Message
	}
	return nil
}

// usage is the total of a thread over all its processes. Input includes cached tokens.
type usage struct {
	Input  adapter.Number `json:"input_tokens"`
	Output adapter.Number `json:"output_tokens"`
}

// read decodes one line. If a field has an unexpected shape, it returns an error and the fields that
// were decoded.
func read(raw json.RawMessage) (event, error) {
	var e event
	err := json.Unmarshal(raw, &e)
	return e, err
}
