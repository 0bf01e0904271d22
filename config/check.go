package config

import (
	"cmp"
	"math"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/origin"
)

// checker makes a Config from the tree and reports what the schema cannot express. The schema check has
// already reported values of the wrong type; here they count as absent.
type checker struct {
	*findings
	root      *file.YAMLNode
	dir       string // absolute, links resolved
	lookupEnv func(string) (string, bool)
	kept      []SourceFile // they need not exist
}

func (c *checker) config() *Config {
	team := c.root.Get("team")
	cfg := &Config{
		File:    c.file,
		Dir:     c.dir,
		Version: 1,
		Team: Team{
			Lead:          textOf(team.Get("lead")),
			Size:          intOf(team.Get("size"), TeamSizeDefault),
			StatusTimeout: c.bounded(team.Get("status_timeout"), StatusTimeout, statusTimeoutMax),
			HatchTimeout:  c.bounded(team.Get("hatch_timeout"), HatchTimeout, hatchTimeoutMax),
			Hold:          boolOf(team.Get("hold"), false),
			Limits:        c.limits(team.Get("limits")),
			DiskBytes:     c.disk(team.Get("disk"), TeamDiskBytes),
		},
		TurnConfig: c.turnConfig(c.root.Get("turnConfig")),
		Notify:     readNotify(c),
		Listen:     c.listen(c.root.Get("listen")),
		Origins:    c.origins(c.root.Get("origins")),
		Workflows:  c.workflows(c.root.Get("workflows")),
	}
	c.agents(cfg)
	c.seats(cfg)
	c.channels(cfg)
	c.dispatch(cfg)
	c.tasks(cfg)
	return cfg
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// name checks the name of an agent or a channel, which becomes part of file names, URLs and the journal's
// entity names.
func (c *checker) name(f file.YAMLField) {
	if !namePattern.MatchString(f.Name) {
		c.add(f.Place, f.Value.Path, "is not a name: %s", nameRule)
	}
}

// fieldsOf and the functions below it read a node that may be absent or of the wrong kind.
func fieldsOf(n *file.YAMLNode) []file.YAMLField {
	if n == nil || n.Kind != file.YAMLObject {
		return nil
	}
	return n.Fields
}

func itemsOf(n *file.YAMLNode) []*file.YAMLNode {
	if n == nil || n.Kind != file.YAMLList {
		return nil
	}
	return n.Items
}

func textOf(n *file.YAMLNode) string {
	if n == nil || n.Kind != file.YAMLText {
		return ""
	}
	return n.Text
}

// textsOf reads a list whose items may also be numbers or booleans. Their text is taken as written, so that
// 1.10 stays 1.10.
func textsOf(n *file.YAMLNode) []string {
	var out []string
	for _, item := range itemsOf(n) {
		if item.Kind == file.YAMLText || item.Kind == file.YAMLNumber || item.Kind == file.YAMLBool {
			out = append(out, item.Text)
		}
	}
	return out
}

func boolOf(n *file.YAMLNode, otherwise bool) bool {
	if n == nil || n.Kind != file.YAMLBool {
		return otherwise
	}
	return strings.EqualFold(n.Text, "true")
}

func intOf(n *file.YAMLNode, otherwise int) int {
	f := n.Float(math.NaN())
	if math.IsNaN(f) || math.Abs(f) > 1<<53 {
		return otherwise
	}
	return int(f)
}

func (c *checker) duration(n *file.YAMLNode, otherwise time.Duration, zeroAllowed bool) time.Duration {
	s := textOf(n)
	if s == "" {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		c.add(n.Place, n.Path, "%s is not a duration; write it like 90s, 10m or 2h", shown(n))
	case d < 0 || d == 0 && !zeroAllowed:
		c.add(n.Place, n.Path, "%s is not a valid duration; it must be more than zero", shown(n))
	case d > durationMax:
		c.add(n.Place, n.Path, "%s is longer than a year; the most is 8760h", shown(n))
	}
	return d
}

// bounded reads a timeout that has a least and a greatest value.
func (c *checker) bounded(n *file.YAMLNode, otherwise, most time.Duration) time.Duration {
	d := c.duration(n, otherwise, false)
	if textOf(n) != "" && d > 0 && d <= durationMax && (d < patienceLeast || d > most) {
		c.add(n.Place, n.Path, "%s is not between %s and %s", shown(n), short(patienceLeast), short(most))
	}
	return d
}

// short formats a duration the way people write it: 1h, not 1h0m0s.
func short(d time.Duration) string {
	if d%time.Hour == 0 {
		return strconv.Itoa(int(d/time.Hour)) + "h"
	}
	return strings.TrimSuffix(d.String(), "m0s")
}

// Bounds of the lead's timeouts.
const (
	patienceLeast    = time.Second
	statusTimeoutMax = time.Hour      // a lead that is silent for longer has stopped
	hatchTimeoutMax  = 24 * time.Hour // an agent that has not registered by then will not
)

const durationMax = 365 * 24 * time.Hour // longer ones are a mistake in the unit

func (c *checker) limits(n *file.YAMLNode) Limits {
	return Limits{
		Session:       c.duration(n.Get("session"), 0, true),
		TokensPerDay:  int64(intOf(n.Get("tokens_per_day"), 0)),
		CostPerDayUSD: n.Get("cost_per_day_usd").Float(0),
	}
}

func (c *checker) turnConfig(n *file.YAMLNode) TurnConfig {
	t := TurnConfig{
		DefaultTimeoutSeconds:    intOf(n.Get("defaultTimeoutSeconds"), 60),
		HumanInterruptMode:       InterruptMode(textOf(n.Get("humanInterruptMode"))),
		AnnounceTimeouts:         boolOf(n.Get("announceTimeouts"), true),
		AnnounceDisconnects:      boolOf(n.Get("announceDisconnects"), true),
		AutoDetectTurnEnd:        boolOf(n.Get("autoDetectTurnEnd"), false),
		AutoDetectSilenceSeconds: intOf(n.Get("autoDetectSilenceSeconds"), 10),
	}
	t.HumanInterruptMode = cmp.Or(t.HumanInterruptMode, Inject)
	return t
}

// reference checks a text that may hold ${NAME} and returns its resolved value where that is possible. The
// resolved value must not appear in a message.
func (c *checker) reference(n *file.YAMLNode, path string) (s Secret, resolved string, ok bool) {
	s = Secret{raw: n.Text}
	lookup := c.lookupEnv
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", true }
	}
	resolved, err := s.Resolve(lookup)
	if err != nil {
		c.add(n.Place, path, "%s", err)
	}
	return s, resolved, err == nil && c.lookupEnv != nil
}

func (c *checker) listen(n *file.YAMLNode) string {
	s := textOf(n)
	if n == nil || n.Kind != file.YAMLText {
		return ListenDefault
	}
	host, port, err := net.SplitHostPort(s)
	if p, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || strconv.FormatUint(p, 10) != port {
		c.add(n.Place, n.Path, "%s is not an address and a port such as %s", shown(n), ListenDefault)
		return ListenDefault
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		c.add(n.Place, n.Path, "%s could be reached from other hosts, which would need TLS and accounts; use 127.0.0.1:%s and a tunnel",
			shown(n), port)
	}
	return s
}

func (c *checker) origins(n *file.YAMLNode) []origin.Origin {
	var all []origin.Origin
	for _, item := range itemsOf(n) {
		if item.Kind != file.YAMLText {
			continue // the schema reports it
		}
		o, err := origin.Parse(textOf(item))
		switch {
		case err != nil:
			c.add(item.Place, item.Path, "%s %s", shown(item), err)
		case slices.Contains(all, o):
			c.add(item.Place, item.Path, "%s is named twice", shown(item))
		default:
			all = append(all, o)
		}
	}
	return all
}

func (c *checker) workflows(n *file.YAMLNode) []string {
	var paths []string
	for _, item := range itemsOf(n) {
		if p := c.existingFile(item); p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

// existingFile makes a path absolute and reports one that is not a file.
func (c *checker) existingFile(n *file.YAMLNode) string {
	s := textOf(n)
	if s == "" {
		return ""
	}
	p := s
	if !filepath.IsAbs(p) {
		p = filepath.Join(c.dir, p)
	}
	switch info, err := os.Stat(p); {
	case slices.ContainsFunc(c.kept, func(f SourceFile) bool { return f.Name == nameFrom(c.dir, p) }):
	case os.IsNotExist(err):
		c.add(n.Place, n.Path, "there is no file %s%s", quoteShort(s), c.neighbour(p))
	case err != nil:
		c.add(n.Place, n.Path, "the file %s cannot be read; check its permissions", quoteShort(s))
	case !info.Mode().IsRegular():
		c.add(n.Place, n.Path, "%s is not a file", quoteShort(s))
	}
	return p
}

// neighbour suggests a file in the same folder with a similar name.
func (c *checker) neighbour(path string) string {
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) > 10_000 {
		return ""
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return didYouMean(filepath.Base(path), names)
}

// channels reads the channels. An agent of the file, an agent described in .claude/agents and the team's lead
// are known names; only agents of the file get turns.
func (c *checker) channels(cfg *Config) {
	var agents []string
	for _, a := range cfg.Agents {
		agents = append(agents, a.Name)
	}
	members := append(slices.Clone(agents), c.subagents()...)
	for _, f := range fieldsOf(c.root.Get("channels")) {
		c.name(f)
		n := f.Value
		if n.Kind != file.YAMLObject {
			continue
		}
		ch := Channel{
			Name:               f.Name,
			Lead:               textOf(n.Get("lead")),
			HumanInterruptMode: InterruptMode(textOf(n.Get("humanInterruptMode"))),
			MaxRounds:          intOf(n.Get("maxRounds"), MaxRoundsDefault),
			WaitTimeout:        time.Duration(intOf(n.Get("waitTimeoutSeconds"), int(WaitTimeoutDefault/time.Second))) * time.Second,
		}
		ch.HumanInterruptMode = cmp.Or(ch.HumanInterruptMode, cfg.TurnConfig.HumanInterruptMode)
		for _, item := range itemsOf(n.Get("agents")) {
			switch {
			case item.Kind != file.YAMLText:
			case slices.Contains(agents, item.Text):
				ch.Agents = append(ch.Agents, item.Text)
			case slices.Contains(members, item.Text):
				c.note(item.Place, item.Path,
					"%s is described in .claude/agents and is not an agent of this file, so it gets no turn; to give it some, add it under agents", shown(item))
			default:
				c.add(item.Place, item.Path, "there is no agent %s%s", shown(item), didYouMean(item.Text, members))
			}
		}
		switch l := n.Get("lead"); {
		case textOf(l) == "" || slices.Contains(agents, l.Text):
		case l.Text == cfg.Team.Lead || slices.Contains(members, l.Text):
			c.note(l.Place, l.Path, "%s is not an agent of this file, so the agent that has the turn answers a person who interrupts",
				shown(l))
		default:
			c.add(l.Place, l.Path, "there is no agent %s%s", shown(l), didYouMean(l.Text, append(slices.Clone(members), cfg.Team.Lead)))
		}
		cfg.Channels = append(cfg.Channels, ch)
	}
	if l := c.root.Get("team").Get("lead"); textOf(l) != "" && !slices.Contains(members, l.Text) {
		c.note(l.Place, l.Path, "%s is not an agent of this file, so Fairlead does not start it%s", shown(l), didYouMean(l.Text, members))
	}
	c.lead(cfg)
}

// lead checks that the lead can receive input during a session, such as a request to summon or wake agents.
func (c *checker) lead(cfg *Config) {
	l := c.root.Get("team").Get("lead")
	name := textOf(l) // an unnamed agent must not count as the lead when team.lead is absent
	a, ok := cfg.Agent(name)
	switch {
	case name == "" || !ok:
	case a.Loop == LoopForeign:
		c.add(l.Place, l.Path,
			"%s runs its own loop, so it cannot receive requests to summon or wake; give it loop fairlead, or name another agent", shown(l))
	case a.Driver == DriverExec:
		c.add(l.Place, l.Path, "%s has driver exec, which accepts no input while it runs; a lead needs driver script, acp, claude or codex",
			shown(l))
	}
}

// subagents returns the agents that are described in .claude/agents.
func (c *checker) subagents() []string {
	paths, _ := filepath.Glob(filepath.Join(globQuote(c.dir), ".claude", "agents", "*.md"))
	var names []string
	for _, p := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(p), ".md"))
	}
	return names
}

func globQuote(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}
