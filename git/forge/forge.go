package forge

import (
	"context"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Code is the kind of a fault.
type Code string

// The codes of faults.
const (
	RateLimited Code = "rate_limited"  // wait until Fault.Until, if that is known
	Offline     Code = "offline"       // the forge cannot be reached, or fails by itself; wait
	NotSignedIn Code = "not_signed_in" // a person has to sign in
	NotFound    Code = "not_found"     // there is none, or the person may not see it
	NoProgram   Code = "no_program"    // gh or glab is not installed
	Refused     Code = "refused"       // the forge or the program said no
	Garbled     Code = "garbled"       // what it printed cannot be read
)

// Fault is an error of gh or glab.
type Fault struct {
	Code  Code
	Text  string    // what failed, and what to do
	Until time.Time // of RateLimited: when it may be tried again; zero: not known
}

func (f *Fault) Error() string { return f.Text }

// Passes reports whether the fault goes away by waiting.
func (f *Fault) Passes() bool { return f.Code == RateLimited || f.Code == Offline }

// Repo is a repository on a forge.
type Repo struct {
	Host string // such as github.com
	Path string // owner/name; on GitLab there may be more parts
}

func (r Repo) String() string { return r.Host + "/" + r.Path }

// Issue is an issue with what a task needs of it.
type Issue struct {
	Number    int
	Title     string
	Body      string
	URL       string
	Open      bool
	Assignees []string
	Comments  []Comment // oldest first
}

// Comment is a remark on an issue or a pull request.
type Comment struct {
	ID      string // unique within its issue or pull request, also among reviews and lines
	Thread  string // where a reply goes; empty: to the conversation as a whole
	Author  string
	Trusted bool // its author may write to the repository
	File    string
	Line    int
	Text    string
}

// CheckState is the state of a check.
type CheckState string

// The states of a check.
const (
	CheckPending CheckState = "pending"
	CheckPassed  CheckState = "passed"
	CheckFailed  CheckState = "failed"
)

// Check is one check of a pull request's newest commit.
type Check struct {
	Name  string
	State CheckState
	URL   string
	Job   string // its id for Log; empty: its log cannot be read
}

// State is the state of a pull request.
type State string

// The states of a pull request.
const (
	Open   State = "open"
	Merged State = "merged"
	Closed State = "closed"
)

// Request is a pull request.
type Request struct {
	Number   int
	URL      string
	State    State
	Head     string // the newest commit that the forge knows of its branch
	Commit   string // of a merged one: the commit on the base branch
	Conflict bool   // it cannot be merged as it is
	Checks   []Check
	Comments []Comment // of the conversation, of reviews and on lines
}

// Draft is a pull request that is to be created.
type Draft struct{ Branch, Base, Title, Body string }

// Forge is GitHub or GitLab. A *Fault is the only error of its methods, apart from a cancelled context.
type Forge interface {
	// Program is gh or glab.
	Program() string
	// SignedIn returns the name of the person who is signed in.
	SignedIn(ctx context.Context) (string, error)
	// Issue reads an issue. Its comments are those of people who may write to the repository.
	Issue(ctx context.Context, number int) (Issue, error)
	// Labelled lists open issues with a label, without their comments.
	Labelled(ctx context.Context, label string) ([]Issue, error)
	// Claim assigns an issue to the person who is signed in and comments on it. It is sent to the forge.
	Claim(ctx context.Context, number int, comment string) error
	// Find returns the open pull request of a branch; nil: there is none.
	Find(ctx context.Context, branch, base string) (*Request, error)
	// Create creates a pull request. It is sent to the forge.
	Create(ctx context.Context, draft Draft) (Request, error)
	// Look reads a pull request with its checks and comments.
	Look(ctx context.Context, number int) (Request, error)
	// Log returns the end of a failed check's log.
	Log(ctx context.Context, check Check) (string, error)
	// Reply answers a comment of a pull request. It is sent to the forge.
	Reply(ctx context.Context, number int, to Comment, text string) error
}

// Limits of what is kept of a forge's answers.
const (
	titleMax    = 300
	bodyMax     = 60 << 10 // a task's text has 64 KiB
	commentMax  = 10 << 10
	commentsMax = 500 // of one pull request; the forges' pages have 100
	checksMax   = 200
	issuesMax   = 100 // of one question
	logMax      = 12 << 10
	logLines    = 80
)

// ForRemote returns the forge of a git remote's URL. Hosts of companies are recognised by their name only if it contains
// github or gitlab.
func ForRemote(remote string) (Forge, error) {
	repo, err := ParseRemote(remote)
	if err != nil {
		return nil, err
	}
	return Of(repo)
}

// Of returns the forge of a repository.
func Of(repo Repo) (Forge, error) {
	switch host := strings.ToLower(repo.Host); {
	case strings.Contains(host, "github"):
		return &gitHub{repo}, nil
	case strings.Contains(host, "gitlab"):
		return &gitLab{repo}, nil
	}
	return nil, &Fault{
		Code: Refused,
		Text: fmt.Sprintf("the remote is on %s, which is neither GitHub nor GitLab by its name; pull requests need gh or glab",
			quote(repo.Host)),
	}
}

var (
	scpRemote = regexp.MustCompile(`^(?:[A-Za-z0-9._-]+@)?([A-Za-z0-9.-]+):([^:].*)$`)
	hostName  = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?$`)
	repoPath  = regexp.MustCompile(`^[A-Za-z0-9_.][A-Za-z0-9_.-]*(?:/[A-Za-z0-9_.][A-Za-z0-9_.-]*)+$`)
)

// ParseRemote reads the URL of a git remote: https://host/owner/name.git, ssh://git@host/owner/name or
// git@host:owner/name. A password in it is ignored.
func ParseRemote(remote string) (Repo, error) {
	no := func(why string) (Repo, error) {
		return Repo{}, &Fault{Code: Refused, Text: "the remote " + why + "; pull requests need a repository on GitHub or GitLab"}
	}
	var r Repo
	if strings.Contains(remote, "://") {
		u, err := url.Parse(remote)
		if err != nil {
			return no("has a URL that cannot be read")
		}
		if u.Scheme != "https" && u.Scheme != "http" && u.Scheme != "ssh" && u.Scheme != "git" && u.Scheme != "git+ssh" {
			return no("has the scheme " + quote(u.Scheme))
		}
		r = Repo{Host: u.Hostname(), Path: u.Path}
	} else if m := scpRemote.FindStringSubmatch(remote); m != nil && !strings.HasPrefix(remote, "/") && !strings.HasPrefix(remote, ".") {
		r = Repo{Host: m[1], Path: m[2]}
	} else {
		return no("is a folder, not the URL of a forge")
	}
	r.Host = strings.TrimPrefix(strings.ToLower(r.Host), "ssh.")
	r.Path = strings.TrimSuffix(strings.Trim(r.Path, "/"), ".git")
	if !hostName.MatchString(r.Host) || !repoPath.MatchString(r.Path) || strings.Contains(r.Path, "..") || len(r.Path) > titleMax {
		return no("names no repository that can be recognised")
	}
	return r, nil
}

// ParseIssue reads the number of an issue or its URL, https://github.com/owner/name/issues/142 or
// https://gitlab.com/group/name/-/issues/142. repo is empty for a number.
func ParseIssue(text string) (repo Repo, number int, err error) {
	no := &Fault{Code: Refused, Text: quote(text) + " is no issue; give its number or its URL, as in --issue 142"}
	at := strings.TrimPrefix(strings.TrimSpace(text), "#")
	if strings.Contains(at, "://") {
		u, err := url.Parse(at)
		if err != nil {
			return Repo{}, 0, no
		}
		dir, last := path.Split(strings.TrimSuffix(u.Path, "/"))
		place, ok := strings.CutSuffix(strings.TrimSuffix(dir, "/"), "/issues")
		if !ok {
			return Repo{}, 0, no
		}
		if repo, err = ParseRemote("https://" + u.Host + strings.TrimSuffix(place, "/-")); err != nil {
			return Repo{}, 0, err
		}
		at = last
	}
	if number, err = strconv.Atoi(at); err != nil || number < 1 || number > 1<<31-1 {
		return Repo{}, 0, no
	}
	return repo, number, nil
}

func quote(text string) string { return strconv.Quote(plain(text, 100)) }

// plain makes a text of at most so many bytes valid UTF-8 without control characters other than newline and tab.
func plain(text string, most int) string {
	return clip.Text(strings.Map(func(c rune) rune {
		if c < ' ' && c != '\n' && c != '\t' || c == 0x7f || c >= 0x80 && c < 0xa0 {
			return -1
		}
		return c
	}, text), most)
}

// tail returns the last lines of a log.
func tail(text string) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	text = strings.Join(lines[max(0, len(lines)-logLines):], "\n")
	if len(text) > logMax {
		text = text[len(text)-logMax:]
	}
	return plain(text, logMax)
}
