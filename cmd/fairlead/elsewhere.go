package main

// elsewhere is what people type who come from other programs, and what it is called here. A
// verb that is near by its letters alone (docs for logs) would lead them astray.
var elsewhere = map[string]string{
	"agents": "ps", "ls": "ps", "list": "ps", "status": "ps", "top": "watch",
	"attach": "watch AGENT", "follow": "watch AGENT", "output": "watch AGENT", "tail": "watch AGENT",
	"log": "events`; what one agent says is `fairlead watch AGENT", "logs": "events`; what one agent says is `fairlead watch AGENT",
	"audit": "events", "history": "events", "journal": "events",
	"explain": "why AGENT", "describe": "why AGENT", "inspect": "why AGENT", "show": "why AGENT",
	"pause": "stop AGENT", "end": "stop AGENT --now", "kill": "stop AGENT --now", "interrupt": "stop AGENT --now", "abort": "stop AGENT --now",
	"restart": "stop AGENT` and then `fairlead start AGENT", "spawn": "start AGENT", "unpause": "start AGENT",
	"freeze": "hold", "thaw": "unhold",
	"serve": "up", "daemon": "up", "recover": "up", "restore": "up", "quit": "down", "shutdown": "down", "exit": "down",
	"create": "init", "new": "init", "setup": "init", "add": "init --agent NAME",
	"dashboard": "open", "gui": "open", "ui": "open", "web": "open",
	"budget": "usage", "cost": "usage", "costs": "usage", "tokens": "usage",
	"chat": "channel say CHANNEL TEXT", "message": "channel say CHANNEL TEXT", "msg": "channel say CHANNEL TEXT", "send": "channel say CHANNEL TEXT", "steer": "tell AGENT TEXT",
	"approvals": "inbox", "pending": "inbox",
	"allow": "answer QUESTION yes", "deny": "answer QUESTION no", "reply": "answer QUESTION",
	"permissions": "question saved", "rules": "question saved", "revoke": "question revoke ID",
	"workflow": "run FILE", "workflows": "run list",
	"check": "doctor", "config": "doctor", "diagnose": "doctor", "validate": "doctor",
	"questions":     "inbox",
	"notifications": "notify list", "notices": "notify list", "alerts": "notify list",
}
