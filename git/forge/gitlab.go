package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// gitLab is a repository on GitLab, by the program glab. It asks for GitLab's REST API, version 4, because the
// formats of that are kept: glab 1.22 to 1.60 print its answers unchanged.
type gitLab struct{ repo Repo }

const developer = 30 // the access level from which a person may write to a repository

func (g *gitLab) Program() string { return "glab" }

// call asks for a path below the project; one that begins with / is of the whole server.
func (g *gitLab) call(ctx context.Context, method, path string, body any) ([]byte, error) {
	if path[0] == '/' {
		path = path[1:]
	} else {
		path = "projects/" + url.PathEscape(g.repo.Path) + "/" + path
	}
	args, env := []string{"api", "--hostname", g.repo.Host, "--method", method}, []string{"GITLAB_HOST=" + g.repo.Host}
	if body == nil {
		return program(ctx, "glab", nil, env, append(args, path)...)
	}
	input, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return program(ctx, "glab", input, env, append(args, "--header", "Content-Type: application/json", "--input", "-", path)...)
}

// labOne asks for a path, as call does, and reads the one value of the answer.
func labOne[T any](ctx context.Context, g *gitLab, method, path string, body any) (v T, err error) {
	out, err := g.call(ctx, method, path, body)
	if err != nil {
		return v, err
	}
	return decodeOne[T](labCall(path), out)
}

// labList asks for a path and reads a list.
func labList[T any](ctx context.Context, g *gitLab, path string) ([]T, error) {
	out, err := g.call(ctx, "GET", path, nil)
	if err != nil {
		return nil, err
	}
	return decode[T](labCall(path), out)
}

// labCall names a question in faults.
func labCall(path string) string {
	path, _, _ = strings.Cut(strings.TrimPrefix(path, "/"), "?")
	return "glab api " + path
}

type labUser struct {
	ID   int64  `json:"id"`
	Name string `json:"username"`
}

func (g *gitLab) me(ctx context.Context) (labUser, error) {
	return labOne[labUser](ctx, g, "GET", "/user", nil)
}

func (g *gitLab) SignedIn(ctx context.Context) (string, error) {
	u, err := g.me(ctx)
	return plain(u.Name, titleMax), err
}

type labIssue struct {
	Number    int       `json:"iid"`
	Title     string    `json:"title"`
	Body      string    `json:"description"`
	URL       string    `json:"web_url"`
	State     string    `json:"state"`
	Assignees []labUser `json:"assignees"`
}

func (i labIssue) issue() Issue {
	is := Issue{
		Number: i.Number, Title: plain(oneLine(i.Title), titleMax), Body: plain(i.Body, bodyMax), URL: link(i.URL),
		Open: i.State == "opened",
	}
	for _, a := range i.Assignees {
		is.Assignees = append(is.Assignees, plain(a.Name, 100))
	}
	return is
}

type labNote struct {
	ID       int64   `json:"id"`
	Body     string  `json:"body"`
	System   bool    `json:"system"`
	Author   labUser `json:"author"`
	Position *struct {
		NewPath string `json:"new_path"`
		OldPath string `json:"old_path"`
		NewLine *int   `json:"new_line"`
		OldLine *int   `json:"old_line"`
	} `json:"position"`
}

func (n labNote) comment(thread string) Comment {
	c := Comment{ID: "n" + strconv.FormatInt(n.ID, 10), Thread: thread, Author: plain(n.Author.Name, 100), Text: plain(n.Body, commentMax)}
	if p := n.Position; p != nil {
		c.File = plain(oneLine(cmp.Or(p.NewPath, p.OldPath)), titleMax)
		for _, line := range []*int{p.NewLine, p.OldLine} {
			if c.Line == 0 && line != nil {
				c.Line = max(0, *line)
			}
		}
	}
	return c
}

// trust finds out who of some authors may write to the project.
func (g *gitLab) trust(ctx context.Context, notes []labNote) (map[int64]bool, error) {
	may := map[int64]bool{}
	for _, n := range notes {
		if _, known := may[n.Author.ID]; known || n.System {
			continue
		}
		member, err := labOne[struct {
			Level int `json:"access_level"`
		}](ctx, g, "GET", fmt.Sprintf("members/all/%d", n.Author.ID), nil)
		if f, ok := errors.AsType[*Fault](err); ok && f.Code == NotFound {
			may[n.Author.ID] = false
			continue
		} else if err != nil {
			return nil, err
		}
		may[n.Author.ID] = member.Level >= developer
	}
	return may, nil
}

func (g *gitLab) Issue(ctx context.Context, number int) (Issue, error) {
	i, err := labOne[labIssue](ctx, g, "GET", fmt.Sprintf("issues/%d", number), nil)
	if err != nil {
		return Issue{}, err
	}
	is := i.issue()
	notes, err := labList[labNote](ctx, g, fmt.Sprintf("issues/%d/notes?per_page=100&sort=asc", number))
	if err != nil {
		return is, err
	}
	may, err := g.trust(ctx, notes)
	for _, n := range notes[:min(len(notes), commentsMax)] {
		if !n.System {
			c := n.comment("")
			c.Trusted = may[n.Author.ID]
			is.Comments = append(is.Comments, c)
		}
	}
	return is, err
}

func (g *gitLab) Labelled(ctx context.Context, label string) ([]Issue, error) {
	list, err := labList[labIssue](ctx, g,
		fmt.Sprintf("issues?labels=%s&state=opened&order_by=created_at&sort=asc&per_page=%d", url.QueryEscape(label), issuesMax))
	var all []Issue
	for _, i := range list {
		all = append(all, i.issue())
	}
	return all, err
}

func (g *gitLab) Claim(ctx context.Context, number int, comment string) error {
	u, err := g.me(ctx)
	if err != nil {
		return err
	}
	_, err = g.call(ctx, "PUT", fmt.Sprintf("issues/%d", number), map[string]any{"assignee_ids": []int64{u.ID}})
	var f *Fault
	if err != nil && (!errors.As(err, &f) || f.Code != Refused) { // a person who may not assign may comment
		return err
	}
	_, err = g.call(ctx, "POST", fmt.Sprintf("issues/%d/notes", number), map[string]string{"body": comment})
	return err
}

type labRequest struct {
	Number   int    `json:"iid"`
	URL      string `json:"web_url"`
	State    string `json:"state"`
	Head     string `json:"sha"`
	Merge    string `json:"merge_commit_sha"`
	Squash   string `json:"squash_commit_sha"`
	Conflict bool   `json:"has_conflicts"`
	Pipeline *struct {
		ID  int64  `json:"id"`
		SHA string `json:"sha"`
	} `json:"head_pipeline"`
}

func (r labRequest) request() Request {
	is := Request{Number: r.Number, URL: link(r.URL), Head: plain(r.Head, 64), Conflict: r.Conflict, State: Open}
	switch r.State {
	case "merged":
		is.State, is.Commit = Merged, plain(cmp.Or(r.Merge, r.Squash, r.Head), 64)
	case "closed":
		is.State = Closed
	}
	return is
}

func (g *gitLab) Find(ctx context.Context, branch, base string) (*Request, error) {
	list, err := labList[labRequest](ctx, g,
		fmt.Sprintf("merge_requests?source_branch=%s&target_branch=%s&state=opened", url.QueryEscape(branch), url.QueryEscape(base)))
	if err != nil || len(list) == 0 {
		return nil, err
	}
	found := list[0].request()
	return &found, nil
}

func (g *gitLab) Create(ctx context.Context, d Draft) (Request, error) {
	r, err := labOne[labRequest](ctx, g, "POST", "merge_requests",
		map[string]string{"source_branch": d.Branch, "target_branch": d.Base, "title": d.Title, "description": d.Body})
	if err == nil && r.Number < 1 {
		err = garbled("glab api merge_requests", errors.New("it names no merge request"))
	}
	return r.request(), err
}

type labJob struct {
	ID      int64  `json:"id"`
	Name    string `json:"name"`
	Status  string `json:"status"`
	URL     string `json:"web_url"`
	MayFail bool   `json:"allow_failure"`
}

func (j labJob) check() Check {
	c := Check{Name: plain(oneLine(j.Name), titleMax), URL: link(j.URL), Job: strconv.FormatInt(j.ID, 10), State: CheckPending}
	switch j.Status {
	case "failed":
		if c.State = CheckFailed; j.MayFail {
			c.State = CheckPassed
		}
	case "success", "manual", "skipped", "canceled":
		c.State = CheckPassed
	}
	return c
}

type labThread struct {
	ID    string    `json:"id"`
	Notes []labNote `json:"notes"`
}

func (g *gitLab) Look(ctx context.Context, number int) (Request, error) {
	r, err := labOne[labRequest](ctx, g, "GET", fmt.Sprintf("merge_requests/%d", number), nil)
	is := r.request()
	if err != nil || is.State != Open {
		return is, err
	}
	if r.Pipeline != nil && r.Pipeline.SHA == r.Head {
		jobs, err := labList[labJob](ctx, g, fmt.Sprintf("pipelines/%d/jobs?per_page=100", r.Pipeline.ID))
		if err != nil {
			return is, err
		}
		for _, j := range jobs[:min(len(jobs), checksMax)] {
			is.Checks = append(is.Checks, j.check())
		}
	}
	threads, err := labList[labThread](ctx, g, fmt.Sprintf("merge_requests/%d/discussions?per_page=100", number))
	if err != nil {
		return is, err
	}
	var notes []labNote
	var in []string
	for _, t := range threads {
		for _, n := range t.Notes {
			if !n.System && len(notes) < commentsMax {
				notes, in = append(notes, n), append(in, t.ID)
			}
		}
	}
	may, err := g.trust(ctx, notes)
	for i, n := range notes {
		c := n.comment(url.PathEscape(plain(in[i], 100)))
		c.Trusted = may[n.Author.ID]
		is.Comments = append(is.Comments, c)
	}
	return is, err
}

func (g *gitLab) Log(ctx context.Context, check Check) (string, error) {
	if check.Job == "" {
		return "", nil
	}
	out, err := g.call(ctx, "GET", "jobs/"+check.Job+"/trace", nil)
	return tail(string(out)), err
}

func (g *gitLab) Reply(ctx context.Context, number int, to Comment, text string) error {
	path := fmt.Sprintf("merge_requests/%d/notes", number)
	if to.Thread != "" {
		path = fmt.Sprintf("merge_requests/%d/discussions/%s/notes", number, to.Thread)
	}
	_, err := g.call(ctx, "POST", path, map[string]string{"body": text})
	return err
}
