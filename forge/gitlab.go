package forge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
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

type labUser struct {
	ID   int64  `json:"id"`
	Name string `json:"username"`
}

func (g *gitLab) me(ctx context.Context) (labUser, error) {
	out, err := g.call(ctx, "GET", "/user", nil)
	if err != nil {
		return labUser{}, err
	}
	return decodeOne[labUser]("glab api user", out)
}

func (g *gitLab) SignedIn(ctx context.Context) (string, error) {
	u, err := g.me(ctx)
	return clip(u.Name, titleMax), err
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
	is := Issue{Number: i.Number, Title: clip(oneLine(i.Title), titleMax), Body: clip(i.Body, bodyMax), URL: link(i.URL), Open: i.State == "opened"}
	for _, a := range i.Assignees {
		is.Assignees = append(is.Assignees, clip(a.Name, 100))
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
	c := Comment{ID: "n" + strconv.FormatInt(n.ID, 10), Thread: thread, Author: clip(n.Author.Name, 100), Text: clip(n.Body, commentMax)}
	if p := n.Position; p != nil {
		c.File = clip(oneLine(cmp.Or(p.NewPath, p.OldPath)), titleMax)
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
		out, err := g.call(ctx, "GET", fmt.Sprintf("members/all/%d", n.Author.ID), nil)
		var f *Fault
		if errors.As(err, &f) && f.Code == NotFound {
			may[n.Author.ID] = false
			continue
		} else if err != nil {
			return nil, err
		}
		member, err := decodeOne[struct {
			Level int `json:"access_level"`
		}]("glab api members", out)
		if err != nil {
			return nil, err
		}
		may[n.Author.ID] = member.Level >= developer
	}
	return may, nil
}

func (g *gitLab) Issue(ctx context.Context, number int) (Issue, error) {
	out, err := g.call(ctx, "GET", fmt.Sprintf("issues/%d", number), nil)
	if err != nil {
		return Issue{}, err
	}
	i, err := decodeOne[labIssue]("glab api issues", out)
	if err != nil {
		return Issue{}, err
	}
	is := i.issue()
	if out, err = g.call(ctx, "GET", fmt.Sprintf("issues/%d/notes?per_page=100&sort=asc", number), nil); err != nil {
		return is, err
	}
	notes, err := decode[labNote]("glab api notes", out)
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
	out, err := g.call(ctx, "GET", fmt.Sprintf("issues?labels=%s&state=opened&order_by=created_at&sort=asc&per_page=%d", url.QueryEscape(label), issuesMax), nil)
	if err != nil {
		return nil, err
	}
	list, err := decode[labIssue]("glab api issues", out)
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
	is := Request{Number: r.Number, URL: link(r.URL), Head: clip(r.Head, 64), Conflict: r.Conflict, State: Open}
	switch r.State {
	case "merged":
		is.State, is.Commit = Merged, clip(cmp.Or(r.Merge, r.Squash, r.Head), 64)
	case "closed":
		is.State = Closed
	}
	return is
}

func (g *gitLab) Find(ctx context.Context, branch, base string) (*Request, error) {
	out, err := g.call(ctx, "GET", fmt.Sprintf("merge_requests?source_branch=%s&target_branch=%s&state=opened", url.QueryEscape(branch), url.QueryEscape(base)), nil)
	if err != nil {
		return nil, err
	}
	list, err := decode[labRequest]("glab api merge_requests", out)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	found := list[0].request()
	return &found, nil
}

func (g *gitLab) Create(ctx context.Context, d Draft) (Request, error) {
	out, err := g.call(ctx, "POST", "merge_requests", map[string]string{"source_branch": d.Branch, "target_branch": d.Base, "title": d.Title, "description": d.Body})
	if err != nil {
		return Request{}, err
	}
	r, err := decodeOne[labRequest]("glab api merge_requests", out)
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
	c := Check{Name: clip(oneLine(j.Name), titleMax), URL: link(j.URL), Job: strconv.FormatInt(j.ID, 10), State: CheckPending}
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
	out, err := g.call(ctx, "GET", fmt.Sprintf("merge_requests/%d", number), nil)
	if err != nil {
		return Request{}, err
	}
	r, err := decodeOne[labRequest]("glab api merge_requests", out)
	is := r.request()
	if err != nil || is.State != Open {
		return is, err
	}
	if r.Pipeline != nil && r.Pipeline.SHA == r.Head {
		if out, err = g.call(ctx, "GET", fmt.Sprintf("pipelines/%d/jobs?per_page=100", r.Pipeline.ID), nil); err != nil {
			return is, err
		}
		jobs, err := decode[labJob]("glab api jobs", out)
		if err != nil {
			return is, err
		}
		for _, j := range jobs[:min(len(jobs), checksMax)] {
			is.Checks = append(is.Checks, j.check())
		}
	}
	if out, err = g.call(ctx, "GET", fmt.Sprintf("merge_requests/%d/discussions?per_page=100", number), nil); err != nil {
		return is, err
	}
	threads, err := decode[labThread]("glab api discussions", out)
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
		c := n.comment(url.PathEscape(clip(in[i], 100)))
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
