package claude

import (
	"encoding/json"
	"time"

	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// message is one line of the program, of any type. Fields that the type does not have are empty;
// unknown fields are ignored.
type message struct {
	Type    string `json:"type"`
	Subtype string `json:"subtype"`

	SessionID string `json:"session_id"`
	Parent    string `json:"parent_tool_use_id"` // not empty: a subagent's message

	// system/init and messages that change its values
	Model        string `json:"model"`
	Mode         string `json:"permissionMode"`
	ModeSnake    string `json:"permission_mode"` // qwen's spelling
	ClaudeCode   string `json:"claude_code_version"`
	QwenCode     string `json:"qwen_code_version"`
	Conversation string `json:"new_conversation_id"`
	Tasks        []task `json:"tasks"`

	// other system messages
	Content    loose          `json:"content"`
	Message    loose          `json:"message"` // assistant, user: the message; permission_denied: the reason
	ToolName   string         `json:"tool_name"`
	Attempt    int            `json:"attempt"`
	RetriesMax int            `json:"max_retries"`
	RetryDelay adapter.Number `json:"retry_delay_ms"`
	HTTPStatus adapter.Number `json:"error_status"` // api_retry; 0: the provider has not answered

	Command loose `json:"command_uuid"` // command_lifecycle: the ID of a message to the program
	State   loose `json:"state"`        // its state: queued, started, completed

	Error  loose        `json:"error"` // assistant, api_retry: an error code such as rate_limit
	Event  *streamEvent `json:"event"` // stream_event
	Limits *rate        `json:"rate_limit_info"`

	result

	RequestID string   `json:"request_id"`
	Request   *request `json:"request"`
	Response  *reply   `json:"response"`
}

// result holds the fields of an answer's end.
type result struct {
	IsError        bool                  `json:"is_error"`
	Result         loose                 `json:"result"`
	Errors         []loose               `json:"errors"`
	Cost           adapter.Number        `json:"total_cost_usd"`
	Usage          *usage                `json:"usage"`
	ModelUsage     map[string]modelUsage `json:"modelUsage"`
	Denials        []denial              `json:"permission_denials"`
	APIStatus      adapter.Number        `json:"api_error_status"`
	TerminalReason string                `json:"terminal_reason"`
	StartupFailure string                `json:"startup_failure_reason"`
	StopReason     string                `json:"stop_reason"`
	Origin         *struct {
		Kind string `json:"kind"`
	} `json:"origin"`
}

type task struct {
	ID   string `json:"task_id"`
	Type string `json:"task_type"`
}

// turn is the message of the API inside of an assistant message.
type turn struct {
	ID      string  `json:"id"`
	Model   string  `json:"model"`
	Content []block `json:"content"`
	Usage   *usage  `json:"usage"`
}

type block struct {
	Type     string          `json:"type"` // text, thinking, tool_use, server_tool_use, tool_result, …
	Text     string          `json:"text"`
	Thinking string          `json:"thinking"`
	ID       string          `json:"id"`
	Name     string          `json:"name"`
	Input    json.RawMessage `json:"input"`

	Of      string          `json:"tool_use_id"` // of a tool_result
	Result  json.RawMessage `json:"content"`     // a text or a list of blocks
	IsError bool            `json:"is_error"`
}

// streamEvent is one event in the stream of a message.
type streamEvent struct {
	Type  string `json:"type"` // message_start, content_block_start, content_block_delta, content_block_stop, message_delta, message_stop
	Block *block `json:"content_block"`
	Delta *struct {
		Type     string `json:"type"` // text_delta, thinking_delta, input_json_delta, …
		Text     string `json:"text"`
		Thinking string `json:"thinking"`
	} `json:"delta"`
}

// usage is the token count of one request to the model. The three kinds of input do not overlap.
type usage struct {
	Input      adapter.Number `json:"input_tokens"`
	CacheRead  adapter.Number `json:"cache_read_input_tokens"`
	CacheWrite adapter.Number `json:"cache_creation_input_tokens"`
	Output     adapter.Number `json:"output_tokens"`
}

type modelUsage struct {
	Window     adapter.Number `json:"contextWindow"` // tokens that its context holds
	Input      adapter.Number `json:"inputTokens"`
	CacheRead  adapter.Number `json:"cacheReadInputTokens"`
	CacheWrite adapter.Number `json:"cacheCreationInputTokens"`
	Output     adapter.Number `json:"outputTokens"`
	Cost       adapter.Number `json:"costUSD"`
}

type denial struct {
	Tool  string          `json:"tool_name"`
	ID    string          `json:"tool_use_id"`
	Input json.RawMessage `json:"tool_input"`
}

type rate struct {
	Status        string         `json:"status"` // allowed, allowed_warning, rejected
	ResetsAt      adapter.Number `json:"resetsAt"`
	Type          string         `json:"rateLimitType"`
	Utilization   adapter.Number `json:"utilization"` // 0 to 1
	OverageStatus string         `json:"overageStatus"`
	UsingOverage  bool           `json:"isUsingOverage"`
}

// request is a request of the program to Fairlead.
type request struct {
	Subtype     string          `json:"subtype"`
	Tool        string          `json:"tool_name"`
	ToolUse     string          `json:"tool_use_id"`
	Input       json.RawMessage `json:"input"`
	Suggestions []suggestion    `json:"permission_suggestions"`
	BlockedPath string          `json:"blocked_path"`
	Reason      loose           `json:"decision_reason"`
	Title       string          `json:"title"`
	Agent       string          `json:"agent_id"`
	NoAlways    bool            `json:"suppress_always_allow_rule"`
}

// reply is the program's response to one of Fairlead's requests.
type reply struct {
	Subtype   string          `json:"subtype"` // success, error
	RequestID string          `json:"request_id"`
	Error     loose           `json:"error"`
	Response  json.RawMessage `json:"response"`
}

// loose is a string, or empty if the field holds another type. No information is lost, because the
// whole message is reported where it matters.
type loose struct {
	Text string
	Raw  json.RawMessage
}

// UnmarshalJSON accepts any value.
func (l *loose) UnmarshalJSON(b []byte) error {
	l.Raw = append([]byte(nil), b...)
	l.Text = ""
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, &l.Text)
	}
	return nil
}

// read decodes one line. A field of an unexpected shape is an error: it is reported as a fault, and
// the conversation continues.
func read(raw json.RawMessage) (message, error) {
	var m message
	err := json.Unmarshal(raw, &m)
	return m, err
}

// turn decodes the message in an assistant message.
func (m message) turn() (turn, error) {
	var t turn
	if len(m.Message.Raw) == 0 {
		return t, nil
	}
	err := json.Unmarshal(m.Message.Raw, &t)
	return t, err
}

func (m message) mode() string {
	if m.Mode != "" {
		return m.Mode
	}
	return m.ModeSnake
}

// program returns the program's name and version as it reports them.
func (m message) program() string {
	switch {
	case m.ClaudeCode != "":
		return "claude " + adapter.OneLine(m.ClaudeCode)
	case m.QwenCode != "":
		return "qwen " + adapter.OneLine(m.QwenCode)
	}
	return ""
}

// resets returns when a limit ends; zero if unknown or implausible.
func (r rate) resets() time.Time {
	const secondsMax = 1 << 33 // the year 2242
	if r.ResetsAt <= 0 || r.ResetsAt > secondsMax {
		return time.Time{}
	}
	return time.Unix(int64(r.ResetsAt), 0).UTC()
}
