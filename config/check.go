package config

import (
	"math"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checker makes a Config from the tree and reports what the schema cannot express. The schema check has
// already reported values of the wrong type; here they count as absent.
type checker struct {
	*findings
	root      *node
	dir       string // absolute, links resolved
	lookupEnv func(string) (string, bool)
}

func (c *checker) config() *Config {
	team := c.root.get("team")
	cfg := &Config{
		File:    c.file,
		Dir:     c.dir,
		Version: 1,
		Team: Team{
			Lead:          textOf(team.get("lead")),
			Size:          intOf(team.get("size"), TeamSizeDefault),
			StatusTimeout: c.bounded(team.get("status_timeout"), StatusTimeout, statusTimeoutMax),
			HatchTimeout:  c.bounded(team.get("hatch_timeout"), HatchTimeout, hatchTimeoutMax),
			Hold:          boolOf(team.get("hold"), false),
			Limits:        c.limits(team.get("limits")),
		},
		TurnConfig: c.turnConfig(c.root.get("turnConfig")),
		Notify: Notify{
			Webhook: c.webhook(c.root.get("notify").get("webhook")),
			Desktop: boolOf(c.root.get("notify").get("desktop"), false),
		},
		Listen:    c.listen(c.root.get("listen")),
		Workflows: c.workflows(c.root.get("workflows")),
	}
	c.agents(cfg)
	c.seats(cfg)
	c.channels(cfg)
	c.dispatch(cfg)
	return cfg
}

var namePattern = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,63}$`)

// name checks the name of an agent or a channel, which becomes part of file names, URLs and the journal's
// entity names.
func (c *checker) name(f field) {
	if !namePattern.MatchString(f.name) {
		c.add(f.place, f.value.path, "is not a name: %s", nameRule)
	}
}

// fieldsOf and the functions below it read a node that may be absent or of the wrong kind.
func fieldsOf(n *node) []field {
	if n == nil || n.kind != object {
		return nil
	}
	return n.fields
}

func itemsOf(n *node) []*node {
	if n == nil || n.kind != list {
		return nil
	}
	return n.items
}

func textOf(n *node) string {
	if n == nil || n.kind != text {
		return ""
	}
	return n.text
}

// textsOf reads a list whose items may also be numbers or booleans. Their text is taken as written, so that
// 1.10 stays 1.10.
func textsOf(n *node) []string {
	var out []string
	for _, item := range itemsOf(n) {
		if item.kind == text || item.kind == number || item.kind == boolean {
			out = append(out, item.text)
		}
	}
	return out
}

func boolOf(n *node, otherwise bool) bool {
	if n == nil || n.kind != boolean {
		return otherwise
	}
	return strings.EqualFold(n.text, "true")
}

func intOf(n *node, otherwise int) int {
	f := floatOf(n, math.NaN())
	if math.IsNaN(f) || math.Abs(f) > 1<<53 {
		return otherwise
	}
	return int(f)
}

func floatOf(n *node, otherwise float64) float64 {
	if n == nil || n.kind != number {
		return otherwise
	}
	switch v, _ := parseNumber(n.text); v := v.(type) {
	case int64:
		return float64(v)
	case float64:
		return v
	}
	return otherwise
}

func (c *checker) duration(n *node, otherwise time.Duration, zeroAllowed bool) time.Duration {
	s := textOf(n)
	if s == "" {
		return otherwise
	}
	d, err := time.ParseDuration(s)
	switch {
	case err != nil:
		c.add(n.place, n.path, "%s is not a duration; write it like 90s, 10m or 2h", shown(n))
	case d < 0 || d == 0 && !zeroAllowed:
		c.add(n.place, n.path, "%s is no length of time; it must be more than zero", shown(n))
	case d > durationMax:
		c.add(n.place, n.path, "%s is longer than a year; the most is 8760h", shown(n))
	}
	return d
}

// bounded reads a timeout that has a least and a greatest value.
func (c *checker) bounded(n *node, otherwise, most time.Duration) time.Duration {
	d := c.duration(n, otherwise, false)
	if textOf(n) != "" && d > 0 && d <= durationMax && (d < patienceLeast || d > most) {
		c.add(n.place, n.path, "%s is not between %s and %s", shown(n), short(patienceLeast), short(most))
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

func (c *checker) limits(n *node) Limits {
	return Limits{
		Session:       c.duration(n.get("session"), 0, true),
		TokensPerDay:  int64(intOf(n.get("tokens_per_day"), 0)),
		CostPerDayUSD: floatOf(n.get("cost_per_day_usd"), 0),
	}
}

func (c *checker) turnConfig(n *node) TurnConfig {
	t := TurnConfig{
		DefaultTimeoutSeconds:    intOf(n.get("defaultTimeoutSeconds"), 60),
		HumanInterruptMode:       InterruptMode(textOf(n.get("humanInterruptMode"))),
		AnnounceTimeouts:         boolOf(n.get("announceTimeouts"), true),
		AnnounceDisconnects:      boolOf(n.get("announceDisconnects"), true),
		AutoDetectTurnEnd:        boolOf(n.get("autoDetectTurnEnd"), false),
		AutoDetectSilenceSeconds: intOf(n.get("autoDetectSilenceSeconds"), 10),
	}
	if t.HumanInterruptMode == "" {
		t.HumanInterruptMode = Inject
	}
	return t
}

// reference checks a text that may hold ${NAME} and returns its resolved value where that is possible. The
// resolved value must not appear in a message.
func (c *checker) reference(n *node, path string) (s Secret, resolved string, ok bool) {
	s = Secret{raw: n.text}
	lookup := c.lookupEnv
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", true }
	}
	resolved, err := s.Resolve(lookup)
	if err != nil {
		c.add(n.place, path, "%s", err)
	}
	return s, resolved, err == nil && c.lookupEnv != nil
}

func (c *checker) webhook(n *node) Secret {
	if textOf(n) == "" {
		return Secret{}
	}
	s, address, ok := c.reference(n, n.path)
	if u, err := url.Parse(address); ok && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		c.add(n.place, n.path, "is not an address that begins with http:// or https://")
	}
	return s
}

func (c *checker) listen(n *node) string {
	s := textOf(n)
	if n == nil || n.kind != text {
		return ListenDefault
	}
	host, port, err := net.SplitHostPort(s)
	if p, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || strconv.FormatUint(p, 10) != port {
		c.add(n.place, n.path, "%s is not an address and a port such as %s", shown(n), ListenDefault)
		return ListenDefault
	}
	if ip := net.ParseIP(host); host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		c.add(n.place, n.path, "%s could be reached from other hosts, which would need TLS and accounts; use 127.0.0.1:%s and a tunnel", shown(n), port)
	}
	return s
}

func (c *checker) workflows(n *node) []string {
	var paths []string
	for _, item := range itemsOf(n) {
		if p := c.existingFile(item); p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

// existingFile makes a path absolute and reports one that is not a file.
func (c *checker) existingFile(n *node) string {
	s := textOf(n)
	if s == "" {
		return ""
	}
	p := s
	if !filepath.IsAbs(p) {
		p = filepath.Join(c.dir, p)
	}
	switch info, err := os.Stat(p); {
	case os.IsNotExist(err):
		c.add(n.place, n.path, "there is no file %s%s", quoteShort(s), c.neighbour(p))
	case err != nil:
		c.add(n.place, n.path, "the file %s cannot be looked at; check its permissions", quoteShort(s))
	case !info.Mode().IsRegular():
		c.add(n.place, n.path, "%s is not a file", quoteShort(s))
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
	for _, f := range fieldsOf(c.root.get("channels")) {
		c.name(f)
		n := f.value
		if n.kind != object {
			continue
		}
		ch := Channel{
			Name:               f.name,
			Lead:               textOf(n.get("lead")),
			HumanInterruptMode: InterruptMode(textOf(n.get("humanInterruptMode"))),
			MaxRounds:          intOf(n.get("maxRounds"), MaxRoundsDefault),
			WaitTimeout:        time.Duration(intOf(n.get("waitTimeoutSeconds"), int(WaitTimeoutDefault/time.Second))) * time.Second,
		}
		if ch.HumanInterruptMode == "" {
			ch.HumanInterruptMode = cfg.TurnConfig.HumanInterruptMode
		}
		for _, item := range itemsOf(n.get("agents")) {
			switch {
			case item.kind != text:
			case slices.Contains(agents, item.text):
				ch.Agents = append(ch.Agents, item.text)
			case slices.Contains(members, item.text):
				c.note(item.place, item.path, "%s stands in .claude/agents and is no agent of this file, so it gets no turn; to give it some, add it under agents", shown(item))
			default:
				c.add(item.place, item.path, "there is no agent %s%s", shown(item), didYouMean(item.text, members))
			}
		}
		switch l := n.get("lead"); {
		case textOf(l) == "" || slices.Contains(agents, l.text):
		case l.text == cfg.Team.Lead || slices.Contains(members, l.text):
			c.note(l.place, l.path, "%s is no agent of this file, so a person that interrupts is answered by whoever has the turn", shown(l))
		default:
			c.add(l.place, l.path, "there is no agent %s%s", shown(l), didYouMean(l.text, append(slices.Clone(members), cfg.Team.Lead)))
		}
		cfg.Channels = append(cfg.Channels, ch)
	}
	if l := c.root.get("team").get("lead"); textOf(l) != "" && !slices.Contains(members, l.text) {
		c.note(l.place, l.path, "%s is no agent of this file, so nobody starts it%s", shown(l), didYouMean(l.text, members))
	}
	c.lead(cfg)
}

// lead checks that the lead can receive input during a session, such as a request to summon or wake agents.
func (c *checker) lead(cfg *Config) {
	l := c.root.get("team").get("lead")
	name := textOf(l) // an unnamed agent must not count as the lead when team.lead is absent
	a, ok := cfg.Agent(name)
	switch {
	case name == "" || !ok:
	case a.Loop == LoopForeign:
		c.add(l.place, l.path, "%s runs its own loop, so it cannot be told to summon or to wake; give it loop fairlead, or name another agent", shown(l))
	case a.Driver == DriverExec:
		c.add(l.place, l.path, "%s has driver exec, which can be told nothing once it runs; a lead needs driver script, acp, claude or codex", shown(l))
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
