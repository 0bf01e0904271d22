package claude

import (
	"encoding/json"
	"fmt"

	"github.com/fairlead-dev/fairlead/driver"
	"github.com/fairlead-dev/fairlead/driver/adapter"
	"github.com/fairlead-dev/fairlead/driver/speech"
)

// request handles a request of the program.
func (h *translator) request(m message, raw json.RawMessage) lineResult {
	if m.Request == nil || m.RequestID == "" {
		h.Fault("a request that cannot be answered", raw)
		return lineResult{}
	}
	switch m.Request.Subtype {
	case "can_use_tool":
		return h.asked(m.RequestID, *m.Request, raw)
	case "elicitation":
		h.Notice("a tool server requests input, which is not supported; the request is declined")
		return lineResult{send: []any{success(m.RequestID, map[string]string{"action": "decline"})}}
	}
	h.Fault("a request of an unknown kind: "+adapter.Clipped(m.Request.Subtype, 80), raw)
	return lineResult{send: []any{failure(m.RequestID, "unknown request: "+m.Request.Subtype)}}
}

func (h *translator) asked(id string, r request, raw json.RawMessage) lineResult {
	if q, again := h.open[id]; again && q.asks == r.Tool+" "+string(r.Input) {
		return lineResult{} // a repetition after a gap; the answer is on its way
	} else if again { // it would be unclear which of the two an answer belongs to
		h.Fault("two permission questions with the same id; both are denied", raw)
		h.withdraw(id)
		return lineResult{send: []any{success(id, answer{Behavior: "deny", Message: refusalWords})}}
	}
	h.call(r.ToolUse, r.Tool, r.Input, raw)
	if r.Tool == "" || len(h.open) >= asksMax {
		h.Fault("a permission question that cannot be answered; it is denied", raw)
		return lineResult{send: []any{success(id, answer{Behavior: "deny", Message: refusalWords})}}
	}
	q := ask(id, r, h.dir, speech.CutRaw(raw))
	q.event.ID, q.asks = h.ownName(id), r.Tool+" "+string(r.Input)
	h.open[id] = q
	h.Out.Tell(q.event)
	return lineResult{}
}

// answer returns the message for the answer to a question. It returns nil if the question is not
// open, or has no such option: the question then stays open.
func (h *translator) answer(o speech.Order) any {
	q, open := h.openAs(o.ID)
	if !open {
		return nil // answered or withdrawn meanwhile
	}
	if o.Option == "" || o.Option == "cancelled" {
		o.Option = optionDeny
	}
	response, ok := q.response(o.Option, o.Text)
	if !ok {
		h.Fault(fmt.Sprintf("the question %s has no option %q; it stays open", adapter.Clipped(o.ID, 80), adapter.Clipped(o.Option, 80)), nil)
		return nil
	}
	delete(h.open, q.request)
	if q.answers[o.Option].Behavior == "deny" && q.event.Tool != askTool && len(h.denied) < adapter.DeniedMax {
		h.denied = append(h.denied, q.what)
	}
	return response
}

func (h *translator) withdraw(id string) {
	if q, open := h.open[id]; open {
		delete(h.open, id)
		h.Out.Tell(speech.Event{Type: driver.PermissionWithdrawn, ID: q.event.ID})
	}
}

// ownName returns a name for a question whose own ID may have been used before. A reused name that
// was already answered would never be shown again.
func (h *translator) ownName(id string) string {
	h.asks++
	if _, before := h.askNames[id]; before || len(h.askNames) >= callsMax {
		return fmt.Sprintf("%s#%d", id, h.asks)
	}
	h.askNames[id] = true
	return id
}

// openAs finds an open question by its reported name.
func (h *translator) openAs(told string) (question, bool) {
	for _, q := range h.open {
		if q.event.ID == told {
			return q, true
		}
	}
	return question{}, false
}

// response handles the program's response to one of our requests.
func (h *translator) response(m message, raw json.RawMessage) lineResult {
	if m.Response == nil {
		h.Fault("an empty response to one of Fairlead's requests", raw)
		return lineResult{}
	}
	if m.Response.Subtype == "error" {
		h.Fault("the program rejects one of Fairlead's requests: "+adapter.Clipped(m.Response.Error.Text, adapter.NoticeBytesMax), raw)
	}
	if m.Response.RequestID != greetingID {
		return lineResult{}
	}
	var says struct {
		SessionID string `json:"session_id"`
	}
	if json.Unmarshal(m.Response.Response, &says) == nil && says.SessionID != "" {
		h.name(driver.Conversed{ID: says.SessionID})
	}
	return lineResult{ready: true}
}
