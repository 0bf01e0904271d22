package uitest

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// DispatchRow is a session with MAIN in a list, as the API shows it.
type DispatchRow struct {
	Name          string     `json:"name"`
	Path          string     `json:"path"`
	Mode          string     `json:"mode"`
	Host          string     `json:"host"`
	Phase         string     `json:"phase"`
	State         string     `json:"state"`
	Began         *time.Time `json:"began"`
	ChangedAt     *time.Time `json:"changed_at"`
	Ended         string     `json:"ended"`
	Conversation  string     `json:"conversation"`
	Conversations int        `json:"conversations"`
	Waiting       int        `json:"waiting"`
	Denied        int        `json:"denied"`
	Fault         string     `json:"fault"`
}

// DispatchLine is one line of its history.
type DispatchLine struct {
	Line         uint64    `json:"line"`
	At           time.Time `json:"at"`
	Row          string    `json:"row"`
	Type         string    `json:"type"`
	From         string    `json:"from"`
	To           string    `json:"to"`
	Shown        string    `json:"shown"`
	Trigger      string    `json:"trigger"`
	Conversation string    `json:"conversation"`
	Actor        Actor     `json:"actor"`
	Foreign      bool      `json:"foreign"`
}

// DispatchFile is a file that a conversation made.
type DispatchFile struct {
	Path    string `json:"path"`
	Output  string `json:"output"`
	Summary string `json:"summary"`
}

// DispatchTalk is one conversation.
type DispatchTalk struct {
	N         int            `json:"n"`
	ID        string         `json:"id"`
	Began     time.Time      `json:"began"`
	Summary   string         `json:"summary"`
	Open      bool           `json:"open"`
	Agents    []string       `json:"agents"`
	Files     []DispatchFile `json:"files"`
	MoreFiles int            `json:"more_files"`

	Dialogue    string       `json:"dialogue"`
	Outputs     []OutputFile `json:"outputs"`
	LeftOut     int          `json:"outputs_left_out"`
	DialogueCut int          `json:"dialogue_left_out"`
	Notes       []string     `json:"notes"`
}

// OutputFile is one below a conversation's outputs.
type OutputFile struct {
	Name      string    `json:"name"`
	Bytes     int       `json:"bytes"`
	ChangedAt time.Time `json:"changed_at"`

	text string
}

// DispatchDenial is a tool call that was not allowed.
type DispatchDenial struct {
	At           time.Time     `json:"at"`
	Conversation string        `json:"conversation"`
	By           string        `json:"by"`
	Tool         string        `json:"tool"`
	Call         string        `json:"call"`
	Row          string        `json:"row"`
	Reason       string        `json:"reason"`
	Delegate     string        `json:"delegate_to"`
	Capability   string        `json:"capability"`
	Then         *DispatchLine `json:"then"`
}

// DispatchAgent is a state beside MAIN.
type DispatchAgent struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	File        string `json:"file"`
}

// DispatchTask is an agent at work.
type DispatchTask struct {
	ID    int       `json:"id"`
	Agent string    `json:"agent"`
	By    string    `json:"by"`
	Text  string    `json:"text"`
	Began time.Time `json:"began"`
}

// DispatchWaiting is an input that waits.
type DispatchWaiting struct {
	Text  string    `json:"text"`
	Agent string    `json:"agent"`
	At    time.Time `json:"at"`
}

// DispatchLayer is one of the things that hold MAIN to its permissions.
type DispatchLayer struct {
	Name  string `json:"name"`
	Holds bool   `json:"holds"`
	Text  string `json:"text"`
}

// Score is an agent's place in a ranking.
type Score struct {
	Name  string      `json:"name"`
	Score float64     `json:"score"`
	Terms []ScoreTerm `json:"terms"`
}

// ScoreTerm is a word of it.
type ScoreTerm struct {
	Word  string  `json:"word"`
	Score float64 `json:"score"`
}

// Desk is a session in which MAIN coordinates. It follows the dispatch machine's table as far as a
// page can see it.
type Desk struct {
	Row     DispatchRow
	Agents  []DispatchAgent
	Layers  []DispatchLayer
	Notes   []string
	lines   []*DispatchLine
	talks   []*DispatchTalk // the oldest first
	denials []*DispatchDenial
	waiting []DispatchWaiting
	work    []DispatchTask
	ranked  map[string]any
}

var (
	mainMay = map[string][]string{
		"can_write":      {"*.md", "*.txt", "*.log", "*.json", "*.csv", "non-executable files"},
		"cannot_write":   {"*.py", "*.js", "*.ts", "*.sh", "*.go", "*.rs", "*.c", "*.cpp", "*.java", "package.json", "requirements.txt", "Dockerfile", "Makefile", "any executable file"},
		"can_execute":    {"read", "list", "search", "analyze", "information-gathering functions only"},
		"cannot_execute": {"run", "exec", "eval", "compile", "build"},
	}
	agentsMay = map[string][]string{"can_write": {"*"}, "cannot_write": {}, "can_execute": {"*"}, "cannot_execute": {}}
)

// AddDesk begins a session; what is not set gets a default.
func (f *Fake) AddDesk(name string, edit func(*Desk)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	now := f.now()
	d := &Desk{Row: DispatchRow{Name: name, Path: "/work/harbour-api/.claude/agent-state-machine/" + name, Mode: "orchestrator", Host: "none", Phase: "ready", State: "MAIN", Began: &now}}
	if edit != nil {
		edit(d)
	}
	f.desks = append(f.desks, d)
	f.note(d, "D1", "session_init", d.Row.Phase, d.Row.State, "", "")
}

func (f *Fake) desk(name string) *Desk {
	i := slices.IndexFunc(f.desks, func(d *Desk) bool { return d.Row.Name == name })
	if i < 0 {
		return nil
	}
	return f.desks[i]
}

func (d *Desk) open() *DispatchTalk {
	if n := len(d.talks); n > 0 && d.talks[n-1].Open {
		return d.talks[n-1]
	}
	return nil
}

func shownState(state string) string { return strings.ToUpper(strings.ReplaceAll(state, "-", "_")) }

// note writes a line and puts it into the journal.
func (f *Fake) note(d *Desk, row, kind, phase, to, trigger, from string) *DispatchLine {
	now := f.now()
	l := &DispatchLine{Line: uint64(len(d.lines) + 1), At: now, Row: row, Type: kind, From: from, To: to, Trigger: trigger, Actor: Actor{"human", "you"}}
	if talk := d.open(); talk != nil {
		l.Conversation = talk.ID
	}
	if from != "" && from != to {
		l.Shown = "[" + shownState(from) + " → " + shownState(to) + "]"
	}
	if talk := d.open(); talk != nil && l.Shown != "" {
		talk.Dialogue += fmt.Sprintf("\n## %s %s\n\n%s\n", now.Format("2006-01-02T15:04:05"), l.Shown, trigger)
	}
	d.lines = append(d.lines, l)
	d.Row.Phase, d.Row.State, d.Row.ChangedAt = phase, to, &now
	for _, denial := range d.denials {
		if denial.Then == nil && l.Shown != "" && denial.Conversation == l.Conversation {
			denial.Then = l
		}
	}
	f.append(Change{Machine: "dispatch", Entity: "dispatch/" + d.Row.Name, Row: row, From: from, To: to, Trigger: trigger, Actor: l.Actor})
	return l
}

// record appends to the dialogue of the open conversation.
func (f *Fake) record(d *Desk, who, text string) {
	if talk := d.open(); talk != nil {
		talk.Dialogue += fmt.Sprintf("\n## %s %s\n\n%s\n", f.now().Format("2006-01-02T15:04:05"), who, text)
	}
}

// Input is D2, and D3 where one of the agents' descriptions has a long word of it.
func (f *Fake) Input(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.input(f.desk(name), text)
}

func (f *Fake) input(d *Desk, text string) {
	best := d.rank(text)
	if d.open() != nil {
		d.waiting = append(d.waiting, DispatchWaiting{Text: text, Agent: best, At: f.now()})
		d.Row.Waiting = len(d.waiting)
		f.note(d, "D2", "input_waiting", d.Row.Phase, d.Row.State, "input waits", d.Row.State)
		return
	}
	n := len(d.talks) + 1
	summary, _, _ := strings.Cut(text, "\n")
	d.talks = append(d.talks, &DispatchTalk{N: n, ID: fmt.Sprintf("conv_%03d", n), Began: f.now(), Summary: summary, Open: true, Dialogue: fmt.Sprintf("# Conversation: conv_%03d\n", n), Agents: []string{}, Files: []DispatchFile{}, Outputs: []OutputFile{}, Notes: []string{}})
	d.Row.Conversations, d.Row.Conversation = n, d.talks[n-1].ID
	f.record(d, "User", text)
	f.note(d, "D2", "conversation_start", "talking", "MAIN", "user input", "MAIN")
}

// rank holds an input against the descriptions, word by word.
func (d *Desk) rank(text string) string {
	scores, terms, best := []Score{}, []string{}, ""
	for word := range strings.FieldsSeq(strings.ToLower(text)) {
		if word = strings.Trim(word, ".,!?\""); len(word) > 3 {
			terms = append(terms, word)
		}
	}
	for _, a := range d.Agents {
		s := Score{Name: a.Name, Terms: []ScoreTerm{}}
		for _, word := range terms {
			if strings.Contains(strings.ToLower(a.Description), word) {
				weight := 0.5 + float64(len(word))/10
				s.Score += weight
				s.Terms = append(s.Terms, ScoreTerm{word, weight})
			}
		}
		if s.Score > 0 {
			scores = append(scores, s)
		}
	}
	slices.SortFunc(scores, func(a, b Score) int { return cmp.Compare(b.Score, a.Score) })
	reason := "No description has enough of these words; MAIN keeps the input."
	if len(scores) > 0 && scores[0].Score >= 1.5 {
		best = scores[0].Name
		reason = best + " takes over: its description has the most of these words."
	}
	d.ranked = map[string]any{"input": text, "ranking": map[string]any{"best": best, "reason": reason, "threshold": 1.5, "terms": terms, "scores": scores}}
	return best
}

// Deny is D8.
func (f *Fake) Deny(name string, denial DispatchDenial) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.desk(name)
	denial.At, denial.By = f.now(), d.Row.State
	denial.Row = cmp.Or(denial.Row, "D8")
	if talk := d.open(); talk != nil {
		denial.Conversation = talk.ID
	}
	d.denials = append(d.denials, &denial)
	d.Row.Denied++
	f.record(d, d.Row.State+" was denied", denial.Tool+": "+denial.Reason)
	f.note(d, "D8", "denied", d.Row.Phase, d.Row.State, "denied "+denial.Tool, d.Row.State)
}

// Delegate is D3.
func (f *Fake) Delegate(name, agent, task, trigger string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.desk(name)
	from, talk := d.Row.State, d.open()
	by := ""
	if from != "MAIN" {
		by = from
	}
	d.work = append(d.work, DispatchTask{ID: len(d.lines), Agent: agent, By: by, Text: task, Began: f.now()})
	if !slices.Contains(talk.Agents, agent) {
		talk.Agents = append(talk.Agents, agent)
	}
	f.record(d, from+" delegates", agent+": "+task)
	f.note(d, "D3", "transition", "working", agent, trigger, from)
}

// Made is D9: a file appears among the outputs of the open conversation.
func (f *Fake) Made(name, file, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.desk(name)
	talk := d.open()
	talk.Outputs = append(talk.Outputs, OutputFile{Name: file, Bytes: len(text), ChangedAt: f.now(), text: text})
	talk.Files = append(talk.Files, DispatchFile{Path: d.Row.Path + "/conversations/" + talk.ID + "/outputs/" + file, Output: file, Summary: "written by " + d.Row.State})
	f.note(d, "D9", "file_written", d.Row.Phase, d.Row.State, "file written", d.Row.State)
}

// TaskDone is D4.
func (f *Fake) TaskDone(name, result string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.desk(name)
	from := d.Row.State
	d.work = d.work[:max(0, len(d.work)-1)]
	f.record(d, from+" reports", result)
	f.note(d, "D4", "transition", "talking", "MAIN", "task completed", from)
}

// Respond is D7, and the next input's D2.
func (f *Fake) Respond(name, text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.desk(name)
	f.record(d, "MAIN", text)
	talk := d.open()
	f.note(d, "D7", "conversation_end", "ready", "MAIN", "response complete", "MAIN")
	talk.Open, d.Row.Conversation = false, ""
	if len(d.waiting) > 0 {
		next := d.waiting[0]
		d.waiting = d.waiting[1:]
		d.Row.Waiting = len(d.waiting)
		f.input(d, next.Text)
	}
}

// EndDesk is D10.
func (f *Fake) EndDesk(name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.endDesk(f.desk(name))
}

func (f *Fake) endDesk(d *Desk) {
	if talk := d.open(); talk != nil {
		talk.Open = false
	}
	d.work, d.waiting, d.Row.Conversation, d.Row.Waiting, d.Row.Ended = nil, nil, "", 0, "ended in Mission Control"
	f.note(d, "D10", "session_end", "closed", "MAIN", "session end", d.Row.State)
}

// EditDesk changes a session behind the journal's back.
func (f *Fake) EditDesk(name string, change func(*Desk)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.desk(name))
}

// EditTalk does so with the conversation that is open.
func (f *Fake) EditTalk(name string, change func(*DispatchTalk)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.desk(name).open())
}

// Foreign puts a line there that another program wrote.
func (f *Fake) Foreign(name, kind, trigger string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.desk(name)
	f.note(d, "", kind, d.Row.Phase, d.Row.State, trigger, d.Row.State).Foreign = true
}
