package acp

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/fairlead-dev/fairlead/core/session"
	"github.com/fairlead-dev/fairlead/process/driver"
	"github.com/fairlead-dev/fairlead/process/driver/adapter"
)

// abilities are the capabilities that a program announces in its answer to initialize.
type abilities struct {
	program string // name and version
	version int64  // of the protocol
	load    bool
	resume  bool
	http    bool     // it supports MCP servers over HTTP
	images  bool     // it takes images in prompts
	signIns []string // ways to sign in, in the program's words
}

func readAbilities(result json.RawMessage) abilities {
	of := objectOf(result)
	can, info := of.object("agentCapabilities"), of.object("agentInfo")
	version, _ := of.number("protocolVersion")
	a := abilities{
		program: clip(oneLine(strings.TrimSpace(cmp.Or(info.text("name"), info.text("title"))+" "+info.text("version"))), 200),
		version: int64(version),
		load:    can.yes("loadSession"),
		resume:  can.object("sessionCapabilities").has("resume"),
		http:    can.object("mcpCapabilities").yes("http"),
		images:  can.object("promptCapabilities").yes("image"),
	}
	for _, raw := range of.list("authMethods") {
		way := objectOf(raw)
		if words := cmp.Or(way.text("description"), way.text("name")); words != "" {
			a.signIns = append(a.signIns, clip(oneLine(words), 200))
		}
	}
	return a
}

// conversation is the state of the conversation with the program.
type conversation struct {
	abilities
	opened
	asks bool // it was started with the settings that make it ask for permission
}

// open starts the program, initializes it and opens the conversation. It returns nil if prompts can
// follow.
func (p *play) open(ctx context.Context) *driver.Stop {
	if end := p.start(); end != nil {
		return end
	}
	if end := p.greet(ctx); end != nil {
		return end
	}
	if end := p.enter(ctx); end != nil {
		return end
	}
	if end := p.setModel(ctx); end != nil {
		return end
	}
	if end := p.setMode(ctx); end != nil {
		return end
	}
	p.name() // the conversation has had no prompt yet, so naming it late loses nothing
	p.opened = true
	return nil
}

func (p *play) start() *driver.Stop {
	env, ours := p.known.environment(p.stage.Env)
	p.conversation.asks = ours
	argv := append(slices.Clone(p.part.Command), p.known.arguments(p.part.Mode, len(p.servers()) > 0)...)
	child, err := p.stage.Start(adapter.Command{Argv: argv, Env: env, Dir: p.part.Dir})
	if err != nil {
		return failed(err.Error())
	}
	if why := p.known.toolsIgnored(p.part.Dir, argv, append(slices.Clone(p.stage.Env), env...)); why != "" && len(p.servers()) > 0 {
		p.fault(why, nil)
	}
	p.child = child
	return nil
}

// greet sends initialize and reads the program's capabilities. It offers no files and no terminals:
// a program that works through ours would bypass its own questions.
func (p *play) greet(ctx context.Context) *driver.Stop {
	m, end := p.ask(ctx, sdk.AgentMethodInitialize, greeting{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		ClientInfo:      sdk.Implementation{Name: adapter.ServerName, Version: clientVersion},
	}, p.limits.greeting)
	if end != nil {
		return end
	}
	if m.err != nil {
		return failed("the program does not accept initialize: " + oneLine(m.err.words()) +
			"; does it speak ACP? Many programs need an argument for it, as in command: [opencode, acp]")
	}
	p.conversation.abilities = readAbilities(m.result)
	if p.conversation.program == "" {
		p.conversation.program = filepath.Base(p.part.Command[0])
	}
	if v := p.conversation.version; v != sdk.ProtocolVersionNumber {
		return failed(fmt.Sprintf("%s speaks version %d of the protocol, Fairlead speaks %d; use a version of the program that speaks %d",
			p.conversation.program, v, sdk.ProtocolVersionNumber, sdk.ProtocolVersionNumber))
	}
	return nil
}

// greeting is the request initialize. The library's own type omits false values, but here they must
// be sent.
type greeting struct {
	ProtocolVersion sdk.ProtocolVersion `json:"protocolVersion"`
	Capabilities    struct {
		FS struct {
			Read  bool `json:"readTextFile"`
			Write bool `json:"writeTextFile"`
		} `json:"fs"`
		Terminal bool `json:"terminal"`
	} `json:"clientCapabilities"`
	ClientInfo sdk.Implementation `json:"clientInfo"`
}

// clientVersion is Fairlead's version in initialize. No program was seen to depend on it.
const clientVersion = "1"

// enter opens a new conversation, or resumes the configured one.
func (p *play) enter(ctx context.Context) *driver.Stop {
	if p.part.Resume != "" {
		return p.reenter(ctx)
	}
	m, end := p.ask(ctx, sdk.AgentMethodSessionNew, sdk.NewSessionRequest{Cwd: p.part.Dir, McpServers: p.servers()}, p.limits.opening)
	if end != nil {
		return end
	}
	if m.err == nil {
		p.conversation.opened = readOpened(m.result)
		if p.conversation.session != "" {
			return nil
		}
		m.err = &rpcError{Message: "it returned no conversation id"}
	}
	words := "the program opened no conversation: " + oneLine(m.err.words())
	if len(p.conversation.signIns) > 0 && signIn.MatchString(words) {
		words += "; sign in first: " + strings.Join(p.conversation.signIns, "; or: ")
	}
	stop := failed(words)
	if e := m.err; e.keyRefused() || e.Code == authRequired && signIn.MatchString(words) {
		stop.Reason = session.ReasonNotSignedIn
	}
	return stop
}

// authRequired is the protocol's code for a program that is not signed in. Programs use it for other
// errors too, so the message is checked as well.
const authRequired = -32000

// reenter resumes an earlier conversation: with session/resume, which replays nothing, or with
// session/load, which does. Some programs announce a method that they do not implement, so the other
// one is tried, too.
func (p *play) reenter(ctx context.Context) *driver.Stop {
	id, servers := sdk.SessionId(p.part.Resume), p.servers()
	type way struct {
		can    bool
		method string
		params any
	}
	why := p.conversation.program + " cannot resume a conversation"
	for _, w := range []way{
		{
			p.conversation.resume, sdk.AgentMethodSessionResume,
			sdk.ResumeSessionRequest{SessionId: id, Cwd: p.part.Dir, McpServers: servers},
		},
		{p.conversation.load, sdk.AgentMethodSessionLoad, sdk.LoadSessionRequest{SessionId: id, Cwd: p.part.Dir, McpServers: servers}},
	} {
		if !w.can {
			continue
		}
		p.replaying = true
		m, end := p.ask(ctx, w.method, w.params, p.limits.opening)
		p.replaying = false
		if end != nil {
			return end
		}
		if m.err == nil {
			p.conversation.opened, p.resumed = readOpened(m.result), true
			p.conversation.session = cmp.Or(p.conversation.session, p.part.Resume)
			return nil
		}
		why = w.method + ": " + oneLine(m.err.words())
	}
	return &driver.Stop{
		Reason: session.ReasonNotResumed,
		Detail: fmt.Sprintf("the conversation %s could not be resumed: %s", clip(p.part.Resume, 200), why),
	}
}

// servers lists the MCP server with the team's tools. The token is in a header or in the environment
// of a command; programs treat both as secrets.
func (p *play) servers() []sdk.McpServer {
	m := p.part.MCP
	switch {
	case m.URL != "" && p.conversation.http:
		return []sdk.McpServer{{Http: &sdk.McpServerHttpInline{
			Type: "http", Name: adapter.ServerName, Url: m.URL,
			Headers: []sdk.HttpHeader{{Name: "Authorization", Value: "Bearer " + m.Token}},
		}}}
	case len(m.Stdio) > 0:
		env := []sdk.EnvVariable{} // the protocol requires a list, and in a view there is no variable
		for _, kv := range adapter.VariablesOf(m) {
			name, value, _ := strings.Cut(kv, "=")
			env = append(env, sdk.EnvVariable{Name: name, Value: value})
		}
		return []sdk.McpServer{{Stdio: &sdk.McpServerStdio{
			Name: adapter.ServerName, Command: m.Stdio[0],
			Args: append([]string{}, m.Stdio[1:]...), Env: env,
		}}}
	}
	return []sdk.McpServer{}
}

// setModel selects the configured model. A program that offers no choice keeps its own model.
func (p *play) setModel(ctx context.Context) *driver.Stop {
	want := p.part.Model
	if want == "" {
		return nil
	}
	if o := p.conversation.option("model"); o != nil {
		return p.setOption(ctx, o, "model", want)
	}
	if len(p.conversation.models) == 0 {
		p.fault("the program offers no choice of models; it uses its own", nil)
		return nil
	}
	id := choose(p.conversation.models, want)
	if id == "" {
		return unknown(p.conversation.program, "model", want, p.conversation.models)
	}
	if id == p.conversation.model {
		return nil
	}
	m, end := p.ask(ctx, sdk.AgentMethodSessionSetModel,
		sdk.UnstableSetSessionModelRequest{SessionId: sdk.SessionId(p.conversation.session), ModelId: sdk.UnstableModelId(id)},
		p.limits.opening)
	if end == nil && m.err != nil {
		end = failed(fmt.Sprintf("%s does not accept the model %s: %s", p.conversation.program, id, oneLine(m.err.words())))
	}
	if end == nil {
		p.conversation.model = id
	}
	return end
}

// setMode sets the configured mode, or else the mode that asks for permission if it is known.
func (p *play) setMode(ctx context.Context) *driver.Stop {
	want := p.part.Mode
	if want == "" {
		want = p.known.asking
		if want == "" || len(p.conversation.modes) == 0 && p.conversation.option("mode") == nil {
			return nil
		}
	}
	if len(p.conversation.modes) == 0 {
		if o := p.conversation.option("mode"); o != nil {
			return p.setOption(ctx, o, "mode", want)
		}
		return failed(fmt.Sprintf("%s has no modes; remove `mode: %s` from the agent's configuration", p.conversation.program,
			clip(want, 100)))
	}
	id := choose(p.conversation.modes, want)
	if id == "" {
		return unknown(p.conversation.program, "mode", want, p.conversation.modes)
	}
	if id != p.conversation.mode {
		m, end := p.ask(ctx, sdk.AgentMethodSessionSetMode,
			sdk.SetSessionModeRequest{SessionId: sdk.SessionId(p.conversation.session), ModeId: sdk.SessionModeId(id)}, p.limits.opening)
		if end != nil {
			return end
		}
		if m.err != nil {
			return failed(fmt.Sprintf("%s does not accept the mode %s: %s", p.conversation.program, id, oneLine(m.err.words())))
		}
	}
	p.conversation.mode, p.wantMode = id, id
	return nil
}

// setOption sets a selector and checks the result: the answer contains the current value.
func (p *play) setOption(ctx context.Context, o *configOption, what, want string) *driver.Stop {
	id := choose(o.values, want)
	if id == "" {
		return unknown(p.conversation.program, what, want, o.values)
	}
	if id != o.current {
		m, end := p.ask(ctx, sdk.AgentMethodSessionSetConfigOption,
			sdk.SetSessionConfigOptionRequest{ValueId: &sdk.SetSessionConfigOptionValueId{
				SessionId: sdk.SessionId(p.conversation.session), ConfigId: sdk.SessionConfigId(o.id), Value: sdk.SessionConfigValueId(id),
			}}, p.limits.opening)
		if end != nil {
			return end
		}
		why := "it has another value"
		if m.err != nil {
			why = oneLine(m.err.words())
		} else {
			p.configure(readConfig(objectOf(m.result).list("configOptions")))
		}
		if now := p.conversation.option(what); m.err != nil || now == nil || now.current != id {
			return failed(fmt.Sprintf("%s does not accept the %s %s: %s", p.conversation.program, what, id, why))
		}
	}
	if what == "mode" {
		p.wantMode = id
	}
	return nil
}

func unknown(program, what, want string, there []choice) *driver.Stop {
	return failed(fmt.Sprintf("%s has no %s %q; it has %s", program, what, clip(want, 100), listed(there)))
}

// moded handles a change of the program's mode.
func (p *play) moded(mode string) {
	if mode == "" || mode == p.conversation.mode {
		return
	}
	p.conversation.mode = mode
	p.named()
}

// configured handles a change of the program's selectors.
func (p *play) configured(options []configOption) {
	before := p.conversed()
	p.configure(options)
	if p.conversed() != before {
		p.named()
	}
}

func (p *play) configure(options []configOption) {
	if len(options) > 0 {
		p.conversation.options = options
	}
}

// named reports the conversation again after a change, if it already has a name.
func (p *play) named() {
	if p.opened {
		p.name()
	}
}

// name reports which conversation this is, and what restricts the program in it.
func (p *play) name() {
	c := p.conversed()
	p.stage.Out.Tell(driver.Fact{Kind: driver.ConversationNamed, Conversation: &c})
}

func (p *play) conversed() driver.Conversed {
	return driver.Conversed{
		ID: p.conversation.session, Model: p.conversation.currentModel(), Mode: p.conversation.currentMode(),
		Program: p.conversation.program, Resumed: p.resumed, Enforced: p.enforced(),
	}
}

func (t *conversation) currentMode() string {
	if o := t.option("mode"); t.mode == "" && o != nil {
		return o.current
	}
	return t.mode
}

// modeWords returns the program's description of a mode.
func (t *conversation) modeWords(mode string) string {
	all := t.modes
	if o := t.option("mode"); len(all) == 0 && o != nil {
		all = o.values
	}
	for _, c := range all {
		if c.id == mode {
			return clip(oneLine(c.words), 200)
		}
	}
	return ""
}

func (t *conversation) currentModel() string {
	if o := t.option("model"); t.model == "" && o != nil {
		return o.current
	}
	return t.model
}

// enforced describes what restricts the program. It claims only what is known.
func (p *play) enforced() string {
	mode := p.conversation.currentMode()
	switch {
	case p.wantMode != "" && mode != "" && mode != p.wantMode:
		return fmt.Sprintf("it changed its mode by itself, from %s to %s", p.wantMode, mode)
	case p.part.Mode != "" && p.part.Mode != p.known.asking:
		text := fmt.Sprintf("mode %s, as the agent's configuration says; what that mode asks is up to the program",
			cmp.Or(mode, p.part.Mode))
		if words := p.conversation.modeWords(mode); words != "" {
			text += ", which describes it as: " + words
		}
		return text
	case len(p.known.env) > 0 && !p.conversation.asks:
		return p.known.variables() + " of the agent's own environment decides what it asks"
	case p.known.asking != "" && mode == p.known.asking:
		return p.known.asks
	}
	return "its own settings decide what it asks; Fairlead sets nothing"
}
