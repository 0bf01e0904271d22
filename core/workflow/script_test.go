package workflow

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/internal/test/golden"
	"github.com/fairlead-dev/fairlead/internal/test/machinetest"
)

// A script contains comments, input lines, a line of dashes, and the expected result. An empty line
// ends a block. The next block continues with the same run, until `plan` creates a new one. Each
// line happens a second after the line before.
//
//	plan [attempts=N] [iterations=N] [places=N] [backoff=D] [pause] [gatefile]    its steps follow
//	  ID [needs=A,B] [back=ID] [human | person] [ordered] [ask=before] [when=C] [timeout=D] [tries=N] [gates=A,B]
//	     [loop=A,B | loop= | from=ID | artifact=F] [until=C] [max=N]
//	start
//	ID starts
//	ID reports [failed|gate] ["why"] [again=D] [artifacts=A,B] [metric=M] [log=L] [living] [until=yes|no|fault]
//	ID ended|lost|withdrawn|limit ["why"]       ID adopted       of the valid lease
//	ID departed                                 of the lease whose process is still alive
//	ID late report | late end                   of the lease before
//	ID answered [noplace] | rejected ["note"] | invalid "why"     [until=…]
//	ID weighed true|false|fault                 ID items A,B | fault
//	gates A,B           skip      timer         late timer
//	order ID N ITERATION          judge [completed|failed]
//	start at ID         resume    cancel [ID]   pause "why"     release
//	hold                unhold    restart       of the runner: the run is read from a snapshot
//	show ID             prints what run_state.json says of the step
func TestScripts(t *testing.T) {
	golden.Stories(t, "*.script", func(t *testing.T, script string) string { return (&stage{t: t}).play(script) })
}

// stage runs a script.
type stage struct {
	t       testing.TB
	run     *Run
	plan    Plan
	options Options
	now     Now
	out     strings.Builder
}

// play runs a script and returns it with its actual results.
func (s *stage) play(script string) string {
	return machinetest.Play(script, &s.out, func(line string) bool { s.line(line); return s.run.complete() }, s.showRun)
}

// words splits a line. A quoted part is one word.
func words(line string) []string {
	var list []string
	for i, part := range strings.Split(line, `"`) {
		if i%2 == 1 {
			list = append(list, part)
			continue
		}
		list = append(list, strings.Fields(part)...)
	}
	return list
}

func list(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
}

func quoted(items []string) []string {
	for i := range items {
		items[i] = strconv.Quote(items[i])
	}
	return items
}

func ids(text string) (all []StepID) {
	for _, id := range list(text) {
		all = append(all, StepID(id))
	}
	return all
}

func (s *stage) line(line string) {
	w := words(line)
	s.now.At = s.now.At.Add(time.Second)
	switch {
	case w[0] == "plan":
		s.newPlan(w[1:])
	case strings.HasPrefix(line, "  "):
		s.plan.Steps = append(s.plan.Steps, s.step(w))
	case w[0] == "start" && len(w) == 1:
		s.decide(RunAsked{
			ID: "r1", Plan: s.plan, Options: s.options, RepoDir: "/repo", ReportsDir: "/repo/reports",
			ManualInputsDir: "/repo/inputs", By: "ada",
		})
	case w[0] == "start" && w[1] == "at":
		s.decide(ResumeAsked{From: StepID(w[2]), By: "ada"})
	case w[0] == "resume":
		s.decide(ResumeAsked{By: "ada"})
	case w[0] == "cancel" && len(w) > 1:
		s.decide(CancelAsked{Step: StepID(w[1]), By: "ada"})
	case w[0] == "cancel":
		s.decide(CancelAsked{By: "ada", Why: "lunch"})
	case w[0] == "pause":
		s.decide(PauseAsked{By: "ada", Why: w[1]})
	case w[0] == "release":
		s.decide(ReleaseAsked{By: "ada"})
	case w[0] == "gates":
		s.decide(GatesSeen{Open: list(strings.Join(w[1:], ""))})
	case w[0] == "edit":
		s.decide(s.edited(w[1:]))
	case w[0] == "order":
		n, _ := strconv.ParseUint(w[2], 10, 64)
		iteration, _ := strconv.Atoi(w[3])
		s.decide(StepOrdered{Step: StepID(w[1]), N: n, Iteration: iteration})
	case w[0] == "judge":
		s.decide(Judged{As: Status(strings.Join(w[1:], ""))})
	case w[0] == "skip":
		s.decide(SkipsDue{})
	case w[0] == "hold", w[0] == "unhold":
		s.now.Held = w[0] == "hold"
	case w[0] == "restart":
		s.run = restored(s.t, s.run)
	case w[0] == "timer":
		s.now.At = s.run.Deadline().At
		s.decide(TimerFired{About: s.run.Deadline()})
	case w[0] == "late" && w[1] == "timer":
		about := Deadline{At: noon, What: w[2], Step: StepID(w[3])}
		s.decide(TimerFired{About: about})
	case w[0] == "show":
		s.show(StepID(w[1]))
	default:
		s.happen(StepID(w[0]), w[1], w[2:])
	}
}

func (s *stage) newPlan(settings []string) {
	s.run, s.plan, s.now = &Run{}, Plan{Name: "workflow"}, Now{At: noon}
	s.options = Options{MaxAttempts: 2, MaxIterations: 4, SideBySide: 4, BackoffFirst: time.Second, BackoffMax: time.Minute}
	for _, word := range settings {
		key, value, _ := strings.Cut(word, "=")
		number, _ := strconv.Atoi(value)
		switch key {
		case "attempts":
			s.options.MaxAttempts = number
		case "iterations":
			s.options.MaxIterations = number
		case "places":
			s.options.SideBySide = number
		case "backoff":
			s.options.BackoffFirst, _ = time.ParseDuration(value)
		case "pause":
			s.options.PauseForHumans = true
		case "gatefile":
			s.options.GateFile = true
		default:
			s.t.Fatalf("no such setting: %s", word)
		}
	}
}

func (s *stage) step(w []string) Step {
	step := Step{ID: StepID(w[0]), Agent: "coder", Prompt: w[0] + ".md"}
	loop := func() *Loop {
		if step.Loop == nil {
			step.Loop = &Loop{}
		}
		return step.Loop
	}
	for _, word := range w[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "needs":
			step.Needs = ids(value)
		case "back":
			step.LoopBackTo = StepID(value)
		case "ordered":
			step.Ordered = true
		case "human":
			step.Human = true
		case "person":
			step.Ordered, step.Human, step.Agent, step.Prompt = true, true, "", ""
		case "ask":
			step.Ask = Ask(value)
		case "when":
			step.When = value
		case "tries":
			step.MaxAttempts, _ = strconv.Atoi(value)
		case "timeout":
			step.Timeout, _ = time.ParseDuration(value)
		case "gates":
			step.Gates = list(value)
		case "loop":
			loop().Items = quoted(list(value))
		case "from":
			loop().ItemsFromStep = StepID(value)
		case "artifact":
			loop().ItemsFromArtifact = value
		case "until":
			loop().UntilCondition = value
		case "max":
			loop().MaxIterations, _ = strconv.Atoi(value)
		default:
			s.t.Fatalf("no such word of a step: %s", word)
		}
	}
	if step.Ordered && step.Human { // it only asks
		step.Agent, step.Prompt = "", ""
	}
	return step
}

// happen applies input for one step.
func (s *stage) happen(id StepID, what string, rest []string) {
	_, p, _ := s.run.Find(id)
	lease, why := Lease{Step: id}, ""
	if p != nil {
		lease.N = p.N
	}
	if len(rest) > 0 && !strings.Contains(rest[0], "=") {
		why = rest[0]
	}
	switch what {
	case "starts":
		s.decide(StartAsked{Step: id})
	case "ended":
		s.decide(ProcessEnded{Lease: lease, Why: why})
	case "busy":
		s.decide(ProviderBusy{Lease: lease, Why: why})
	case "lost":
		s.decide(ProcessLost{Lease: lease, Why: why})
	case "withdrawn":
		s.decide(StartWithdrawn{Lease: lease, Why: why})
	case "adopted":
		s.decide(ProcessAdopted{Lease: lease})
	case "departed":
		s.decide(ProcessEnded{Lease: Lease{id, p.Proc}})
	case "limit":
		s.decide(LimitHit{Lease: lease, Limit: why})
	case "late":
		lease.N--
		if why == "end" {
			s.decide(ProcessEnded{Lease: lease})
		} else {
			s.decide(ReportRead{Lease: lease})
		}
	case "weighed":
		v := Verdict{Holds: why == "true"}
		if why == "fault" {
			v.Fault = "no step is called plannnig"
		}
		s.decide(WhenWeighed{Step: id, Iteration: p.Iteration, Verdict: v})
	case "items":
		in := ItemsSeen{Step: id, Iteration: p.Iteration}
		if why == "fault" {
			in.Fault = "tasks.json is no list"
		} else {
			in.Items = quoted(list(why))
		}
		s.decide(in)
	case "reports":
		s.decide(report(lease, rest))
	case "answered", "rejected", "invalid":
		s.decide(answer(lease, what, why, rest))
	default:
		s.t.Fatalf("no such line: %s %s", id, what)
	}
}

func report(lease Lease, rest []string) ReportRead {
	in := ReportRead{Lease: lease, Over: true}
	for _, word := range rest {
		key, value, _ := strings.Cut(word, "=")
		switch key {
		case "failed":
			in.Report.Failed = true
		case "gate":
			in.Report.GateFailed = true
		case "living":
			in.Over = false
		case "again":
			in.Report.Again, _ = time.ParseDuration(value)
		case "artifacts":
			in.Report.Artifacts = list(value)
		case "metric":
			in.Report.Metrics = append(in.Report.Metrics, Metric{Name: "n", Value: value})
		case "log":
			in.Report.Logs = append(in.Report.Logs, value)
		case "until":
			in.Until = until(value)
		default:
			in.Report.Why = word
		}
	}
	return in
}

func answer(lease Lease, what, why string, rest []string) AnswerRead {
	in := AnswerRead{Lease: lease, By: "ada", Rejected: what == "rejected", Place: true}
	switch what {
	case "invalid":
		in.Fault = why
	case "rejected":
		in.Note = why
	}
	for _, word := range rest {
		if key, value, _ := strings.Cut(word, "="); key == "until" {
			in.Until = until(value)
		} else if word == "noplace" {
			in.Place = false
		}
	}
	return in
}

func until(word string) *Verdict {
	v := &Verdict{Holds: word == "yes"}
	if word == "fault" {
		v.Fault = "no metric is called n"
	}
	return v
}

func (s *stage) decide(in Input) {
	changes, err := decide(s.t, s.run, in, s.now)
	if err != nil {
		fmt.Fprintf(&s.out, "refused: %v\n", err)
		return
	}
	if len(changes) == 0 {
		fmt.Fprintf(&s.out, "nothing\n")
	}
	for _, ch := range changes {
		s.showChange(ch)
		s.run.Apply(journaled(s.t, ch))
	}
}

func (s *stage) showChange(ch change.Change) {
	line := func(step, from, to string) {
		fmt.Fprintf(&s.out, "%-4s %-12s %s -> %s  %s\n", ch.Row, step, from, to, ch.Trigger)
	}
	each := func(moves []Move) {
		for _, move := range moves {
			line(string(move.Step), string(move.From), ch.To)
		}
	}
	switch body := change.As[Body](ch.Body); {
	case body.Head != nil:
		line("(run)", ch.From, ch.To)
	case body.Plan != nil:
		for _, step := range body.Plan.Steps {
			line(string(step.ID), "(none)", ch.To)
		}
	case body.Reset != nil:
		each(body.Reset.Moves)
	case body.Moved != nil:
		each(body.Moved.Moves)
	case body.Step != nil:
		line(string(StepOf(&ch)), ch.From, ch.To)
		if v := body.Step.Value; v.LastError != "" && ch.To != string(Running) {
			fmt.Fprintf(&s.out, "       %s\n", v.LastError)
		}
	}
}

// showRun prints the state of all steps and the pending actions.
func (s *stage) showRun() {
	fmt.Fprintf(&s.out, "= %s:", s.run.Status())
	for i := range s.run.Plan.Steps {
		p := &s.run.Steps[i]
		fmt.Fprintf(&s.out, " %s %s %d/%d", s.run.Plan.Steps[i].ID, strings.ToLower(string(p.State)), p.Iteration, p.Attempts)
		if p.BlockedBy != "" {
			fmt.Fprintf(&s.out, " behind %s", p.BlockedBy)
		}
		s.out.WriteByte(',')
	}
	s.out.WriteByte('\n')
	for action := range s.run.Actions(s.now) {
		line := fmt.Sprintf("  %s %s", action.Do, action.Lease.Step)
		if action.Lease.N > 0 {
			line += fmt.Sprintf(" lease=%d", action.Lease.N)
		}
		if action.Do == RunIt && action.Item > 0 {
			line += fmt.Sprintf(" item=%d", action.Item)
		}
		if action.Answered {
			line += " answered"
		}
		if action.Why != "" {
			line += ": " + action.Why
		}
		fmt.Fprintln(&s.out, strings.TrimRight(line, " "))
	}
	if next := s.run.Deadline(); !next.At.IsZero() {
		fmt.Fprintf(&s.out, "  at %s: %s of %s\n", next.At.Format("15:04:05"), next.What, next.Step)
	}
	for _, wait := range s.run.Waits() {
		fmt.Fprintf(&s.out, "  waits: %s\n", wait)
	}
}

// show prints what run_state.json says of a step.
func (s *stage) show(id StepID) {
	_, p, _ := s.run.Find(id)
	fmt.Fprintf(&s.out, "%s is %s %d/%d\n", id, p.State, p.Iteration, p.Attempts)
	for _, field := range [][2]string{
		{"report_path", p.ReportPath},
		{"last_error", p.LastError},
		{"manual_input_path", p.ManualInputPath},
		{"blocked_by_loop", string(p.BlockedBy)},
		{"artifacts", strings.Join(p.Artifacts, " ")},
		{"logs", strings.Join(p.Logs, " | ")},
		{"started_at", clock(p.StartedAt)},
		{"ended_at", clock(p.EndedAt)},
	} {
		if field[1] != "" {
			fmt.Fprintf(&s.out, "  %s: %s\n", field[0], field[1])
		}
	}
	for _, m := range p.Metrics {
		fmt.Fprintf(&s.out, "  metric %s: %s\n", m.Name, m.Value)
	}
	if items := s.run.LoopItems(id); len(items) > 0 {
		fmt.Fprintf(&s.out, "  loop_index %d of %s, loop_completed %d\n", p.Index, strings.Join(slices.Clone(items), " "), p.Done)
	}
}

func clock(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.Format("15:04:05")
}
