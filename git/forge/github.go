package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// gitHub is a repository on GitHub, by the program gh. The formats are those of gh 2.40 to 2.80.
type gitHub struct{ repo Repo }

func (g *gitHub) Program() string { return "gh" }

func (g *gitHub) ask(ctx context.Context, input []byte, args ...string) ([]byte, error) {
	out, err := program(ctx, "gh", input, nil, args...)
	if f, ok := errors.AsType[*Fault](err); ok && f.Code == RateLimited {
		f.Until = g.reset(ctx)
	}
	return out, err
}

// reset is when GitHub answers again; zero: not known. This question counts for no limit.
func (g *gitHub) reset(ctx context.Context) time.Time {
	out, err := program(ctx, "gh", nil, nil, "api", "--hostname", g.repo.Host, "rate_limit")
	if err != nil {
		return time.Time{}
	}
	return parseReset(out)
}

func parseReset(out []byte) (until time.Time) {
	type window struct {
		Remaining int   `json:"remaining"`
		Reset     int64 `json:"reset"`
	}
	var all struct {
		Resources map[string]window `json:"resources"`
	}
	if json.Unmarshal(out, &all) != nil {
		return until
	}
	for _, name := range []string{"core", "graphql"} {
		if w, ok := all.Resources[name]; ok && w.Remaining == 0 {
			if at := time.Unix(w.Reset, 0); at.After(until) {
				until = at
			}
		}
	}
	return until
}

// on is the flag that names the repository.
func (g *gitHub) on() string { return "--repo=" + g.repo.String() }

func (g *gitHub) api(ctx context.Context, method, path string, body any) ([]byte, error) {
	args := []string{"api", "--hostname", g.repo.Host, "--method", method}
	if body == nil {
		return g.ask(ctx, nil, append(args, "--paginate", path)...)
	}
	input, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return g.ask(ctx, input, append(args, "--input", "-", path)...)
}

func (g *gitHub) SignedIn(ctx context.Context) (string, error) {
	u, err := hubOne[hubUser](ctx, g, "api", "user", "--hostname", g.repo.Host)
	return plain(u.Login, titleMax), err
}

// hubOne asks gh and reads the one value of the answer.
func hubOne[T any](ctx context.Context, g *gitHub, args ...string) (v T, err error) {
	out, err := g.ask(ctx, nil, args...)
	if err != nil {
		return v, err
	}
	return decodeOne[T]("gh "+strings.Join(args[:2], " "), out)
}

type hubUser struct {
	Login string `json:"login"`
}

type hubIssue struct {
	Number    int          `json:"number"`
	Title     string       `json:"title"`
	Body      string       `json:"body"`
	URL       string       `json:"url"`
	State     string       `json:"state"`
	Assignees []hubUser    `json:"assignees"`
	Comments  []hubComment `json:"comments"`
}

type hubComment struct {
	ID     string  `json:"id"`
	Author hubUser `json:"author"`
	Assoc  string  `json:"authorAssociation"`
	Body   string  `json:"body"`
	State  string  `json:"state"` // of a review
}

// trusted are the people who may write to a repository, in GitHub's words.
func trusted(association string) bool {
	return slices.Contains([]string{"OWNER", "MEMBER", "COLLABORATOR"}, association)
}

func (c hubComment) comment(kind string) Comment {
	return Comment{
		ID: kind + plain(c.ID, 100), Author: plain(c.Author.Login, 100), Trusted: trusted(c.Assoc),
		Text: plain(c.Body, commentMax),
	}
}

func (i hubIssue) issue() Issue {
	is := Issue{
		Number: i.Number, Title: plain(oneLine(i.Title), titleMax), Body: plain(i.Body, bodyMax), URL: link(i.URL),
		Open: i.State == "OPEN",
	}
	for _, a := range i.Assignees {
		is.Assignees = append(is.Assignees, plain(a.Login, 100))
	}
	for _, c := range i.Comments[:min(len(i.Comments), commentsMax)] {
		is.Comments = append(is.Comments, c.comment("c"))
	}
	return is
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// link keeps a URL only if it is one.
func link(text string) string {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || len(text) > 2000 || plain(text, 2000) != text {
		return ""
	}
	return text
}

const hubIssueFields = "number,title,body,url,state,assignees"

func (g *gitHub) Issue(ctx context.Context, number int) (Issue, error) {
	i, err := hubOne[hubIssue](ctx, g, "issue", "view", strconv.Itoa(number), g.on(), "--json", hubIssueFields+",comments")
	return i.issue(), err
}

func (g *gitHub) Labelled(ctx context.Context, label string) ([]Issue, error) {
	list, err := hubOne[[]hubIssue](ctx, g, "issue", "list", g.on(), "--label", label, "--state", "open", "--limit",
		strconv.Itoa(issuesMax), "--json", hubIssueFields)
	var all []Issue
	for _, i := range list {
		all = append(all, i.issue())
	}
	slices.SortFunc(all, func(a, b Issue) int { return a.Number - b.Number }) // the oldest first
	return all, err
}

func (g *gitHub) Claim(ctx context.Context, number int, comment string) error {
	_, err := g.ask(ctx, nil, "issue", "edit", strconv.Itoa(number), g.on(), "--add-assignee", "@me")
	var f *Fault
	if err != nil && (!errors.As(err, &f) || f.Code != Refused) { // a person who may not assign may comment
		return err
	}
	_, err = g.api(ctx, "POST", fmt.Sprintf("repos/%s/issues/%d/comments", g.repo.Path, number), map[string]string{"body": comment})
	return err
}

type hubRequest struct {
	Number      int    `json:"number"`
	URL         string `json:"url"`
	State       string `json:"state"`
	Head        string `json:"headRefOid"`
	Fork        bool   `json:"isCrossRepository"`
	Mergeable   string `json:"mergeable"`
	MergeCommit *struct {
		OID string `json:"oid"`
	} `json:"mergeCommit"`
	Checks   []hubCheck   `json:"statusCheckRollup"`
	Comments []hubComment `json:"comments"`
	Reviews  []hubComment `json:"reviews"`
}

// hubCheck is a check run, or a status of the older kind.
type hubCheck struct {
	Kind       string `json:"__typename"`
	Name       string `json:"name"`
	Workflow   string `json:"workflowName"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"`
	Details    string `json:"detailsUrl"`
	Context    string `json:"context"`
	State      string `json:"state"`
	Target     string `json:"targetUrl"`
	Started    string `json:"startedAt"`
}

var hubJob = regexp.MustCompile(`/actions/runs/\d+/job/(\d+)`)

func (c hubCheck) check() Check {
	is := Check{Name: plain(oneLine(cmp.Or(c.Name, c.Context)), titleMax), URL: link(cmp.Or(c.Details, c.Target)), State: CheckPending}
	if c.Workflow != "" {
		is.Name = plain(oneLine(c.Workflow), titleMax) + " / " + is.Name
	}
	if m := hubJob.FindStringSubmatch(c.Details); m != nil {
		is.Job = m[1]
	}
	switch cmp.Or(c.Conclusion, c.State) {
	case "FAILURE", "ERROR", "TIMED_OUT", "STARTUP_FAILURE", "ACTION_REQUIRED":
		is.State = CheckFailed
	case "SUCCESS", "NEUTRAL", "SKIPPED", "CANCELLED", "STALE": // no change of files repairs a cancelled one
		is.State = CheckPassed
	}
	return is
}

func (r hubRequest) request() Request {
	is := Request{Number: r.Number, URL: link(r.URL), Head: plain(r.Head, 64), Conflict: r.Mergeable == "CONFLICTING", State: Open}
	switch r.State {
	case "MERGED":
		is.State = Merged
	case "CLOSED":
		is.State = Closed
	}
	if r.MergeCommit != nil {
		is.Commit = plain(r.MergeCommit.OID, 64)
	}
	newest, at := map[string]string{}, map[string]int{} // a check that ran twice is there twice
	for _, c := range r.Checks[:min(len(r.Checks), checksMax)] {
		one := c.check()
		i, again := at[one.Name]
		switch {
		case !again:
			at[one.Name] = len(is.Checks)
			is.Checks = append(is.Checks, one)
		case c.Started >= newest[one.Name]:
			is.Checks[i] = one
		default:
			continue
		}
		newest[one.Name] = c.Started
	}
	for _, c := range r.Comments[:min(len(r.Comments), commentsMax)] {
		is.Comments = append(is.Comments, c.comment("c"))
	}
	for _, c := range r.Reviews[:min(len(r.Reviews), commentsMax)] {
		if c.Body != "" && (c.State == "CHANGES_REQUESTED" || c.State == "COMMENTED") { // not the words of an approval
			is.Comments = append(is.Comments, c.comment("r"))
		}
	}
	return is
}

func (g *gitHub) Find(ctx context.Context, branch, base string) (*Request, error) {
	list, err := hubOne[[]hubRequest](ctx, g, "pr", "list", g.on(), "--head", branch, "--base", base, "--state", "open", "--limit", "10",
		"--json", "number,url,state,headRefOid,isCrossRepository")
	for _, r := range list {
		if !r.Fork {
			found := r.request()
			return &found, nil
		}
	}
	return nil, err
}

var hubPull = regexp.MustCompile(`(https?://\S+/pull/(\d+))\s*$`)

func (g *gitHub) Create(ctx context.Context, d Draft) (Request, error) {
	out, err := g.ask(ctx, []byte(d.Body), "pr", "create", g.on(), "--head", d.Branch, "--base", d.Base, "--title", d.Title, "--body-file",
		"-")
	if err != nil {
		return Request{}, err
	}
	m := hubPull.FindStringSubmatch(string(out))
	if m == nil {
		return Request{}, garbled("gh pr create", errors.New("it names no pull request"))
	}
	number, err := strconv.Atoi(m[2])
	if err != nil {
		return Request{}, garbled("gh pr create", err)
	}
	return Request{Number: number, URL: link(m[1]), State: Open}, nil
}

type hubLine struct {
	ID       int64   `json:"id"`
	ReplyTo  int64   `json:"in_reply_to_id"`
	Path     string  `json:"path"`
	Line     *int    `json:"line"`
	Original *int    `json:"original_line"`
	Body     string  `json:"body"`
	User     hubUser `json:"user"`
	Assoc    string  `json:"author_association"`
}

func (l hubLine) comment() Comment {
	c := Comment{
		ID: "l" + strconv.FormatInt(l.ID, 10), Thread: strconv.FormatInt(cmp.Or(l.ReplyTo, l.ID), 10), Author: plain(l.User.Login, 100),
		Trusted: trusted(l.Assoc),
		File:    plain(oneLine(l.Path), titleMax), Text: plain(l.Body, commentMax),
	}
	for _, n := range []*int{l.Line, l.Original} { // the line is null once the code around it has changed
		if c.Line == 0 && n != nil {
			c.Line = max(0, *n)
		}
	}
	return c
}

func (g *gitHub) Look(ctx context.Context, number int) (Request, error) {
	r, err := hubOne[hubRequest](ctx, g, "pr", "view", strconv.Itoa(number), g.on(), "--json",
		"number,url,state,headRefOid,mergeable,mergeCommit,statusCheckRollup,comments,reviews")
	is := r.request()
	if err != nil || is.State != Open {
		return is, err
	}
	out, err := g.api(ctx, "GET", fmt.Sprintf("repos/%s/pulls/%d/comments?per_page=100", g.repo.Path, number), nil)
	if err != nil {
		return Request{}, err
	}
	lines, err := decode[hubLine]("gh api pulls/comments", out)
	for _, l := range lines[:min(len(lines), commentsMax)] {
		is.Comments = append(is.Comments, l.comment())
	}
	return is, err
}

func (g *gitHub) Log(ctx context.Context, check Check) (string, error) {
	if check.Job == "" {
		return "", nil
	}
	out, err := g.ask(ctx, nil, "run", "view", g.on(), "--job", check.Job, "--log-failed")
	var lines []string
	for line := range strings.Lines(string(out)) {
		if _, step, ok := strings.Cut(line, "\t"); ok { // job, step, time and text
			if _, text, ok := strings.Cut(step, "\t"); ok {
				line = logTime.ReplaceAllString(text, "")
			}
		}
		lines = append(lines, line)
	}
	return tail(strings.Join(lines, "")), err
}

var logTime = regexp.MustCompile(`^\x{FEFF}?\d{4}-\d\d-\d\dT[0-9:.]+Z ?`)

func (g *gitHub) Reply(ctx context.Context, number int, to Comment, text string) error {
	path := fmt.Sprintf("repos/%s/issues/%d/comments", g.repo.Path, number)
	if to.Thread != "" {
		path = fmt.Sprintf("repos/%s/pulls/%d/comments/%s/replies", g.repo.Path, number, to.Thread)
	}
	_, err := g.api(ctx, "POST", path, map[string]string{"body": text})
	return err
}
