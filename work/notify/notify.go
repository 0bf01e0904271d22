package notify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"
	"time"
	"unicode"

	"github.com/fairlead-dev/fairlead/core/notice"
)

const (
	tryMax     = 10 * time.Second // for one try; a working server answers within a second
	addressMax = 8192             // bytes of an address; servers accept no longer ones
)

// Message is what one delivery tells.
type Message struct {
	Listed []notice.Notice // at least one
	More   int             // further notices, which are only counted
	Base   string          // the address of Mission Control, for links; it ends with a slash
}

// Way is a way to reach a person.
type Sender interface {
	// Kind names it for people: desktop, the scheme of its address, or the host of a webhook.
	Kind() string
	// Tell tries once. The texts of its failure are fixed and hold nothing from the address or from a server.
	Send(ctx context.Context, m Message) *notice.Failure
	// Each says that it is read by a program, which gets a message for each notice.
	Each() bool
}

// Desktop is the address of a notification on the screen of the user who started Fairlead.
const Desktop = "desktop"

// errAddress does not say what the address is: it is a secret.
var errAddress = errors.New("is not an address for notices: use \"desktop\", an address that begins with http:// or https:// and names a host, " +
	"or one of a service, such as ntfy://ntfy.sh/TOPIC, slack://, discord://, telegram:// or smtp://")

// Open makes the way to an address. Its error does not hold the address.
func Open(address string) (Sender, error) {
	if address == Desktop {
		return newDesktop(), nil
	}
	u, err := url.Parse(address)
	if err != nil || len(address) > addressMax || u.Scheme == "" {
		return nil, errAddress
	}
	if u.Scheme == "http" || u.Scheme == "https" {
		if w := newWebhook(u); w != nil {
			return w, nil
		}
		return nil, errAddress
	}
	s, err := newService(address)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// Link is the address of the page that shows a notice. Opening it changes nothing.
func Link(base string, m *notice.Notice) string {
	if base == "" {
		return ""
	}
	return base + m.Page
}

// Headline says in a few words what a notice is.
func headline(m *notice.Notice) string {
	who := cmp.Or(m.Agent, m.Workflow, m.Run)
	job := "run " + m.Run
	if m.Title != "" {
		job = "task " + m.Run
		if m.Agent == "" {
			who = job
		}
	}
	switch m.Event {
	case notice.NeedsYou:
		return who + " waits for you"
	case notice.StillNeedsYou:
		return who + " still waits for you"
	case notice.GaveUp:
		return who + " gave up"
	case notice.RunFailed, notice.TaskFailed:
		return job + " failed"
	case notice.LimitReached:
		return cmp.Or(m.Agent, m.Workflow, "the team") + " reached a limit"
	case notice.Finished:
		return job + " is done"
	case notice.Test:
		return "test notice"
	}
	panic("notify: an event without words: " + string(m.Event))
}

// title is the title of a message, for people: one line.
func (m Message) title() string {
	if n := len(m.Listed) + m.More; n > 1 {
		return fmt.Sprintf("Fairlead: %d notices", n)
	}
	return "Fairlead: " + plain(headline(&m.Listed[0]), wordsMax)
}

// bodyMax is the length of a body in bytes. Discord takes 2,000 characters, Telegram 4,096 bytes.
const bodyMax = 1900

// body is the text below the title: a line for each notice, and its link in a line of its own. What does not fit is
// counted.
func (m Message) body() string {
	var b strings.Builder
	more := m.More
	for i := range m.Listed {
		text := m.entry(&m.Listed[i])
		if i > 0 && b.Len()+len(text) > bodyMax {
			more += len(m.Listed) - i
			break
		}
		b.WriteString(text)
	}
	if more > 0 {
		fmt.Fprintf(&b, "and %d more", more)
		if m.Base != "" {
			b.WriteString(": " + m.Base + "#/inbox")
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func (m Message) entry(one *notice.Notice) string {
	text := plain(one.Why, wordsMax)
	if len(m.Listed)+m.More > 1 {
		text = "\u2022 " + plain(headline(one), wordsMax) + ": " + text
	}
	if one.Title != "" {
		text += ": " + plain(one.Title, titleMax)
	}
	if link := Link(m.Base, one); link != "" {
		text += "\n" + link
	}
	return text + "\n"
}

const (
	wordsMax = 300  // characters of a name or a reason, because a notification is small
	titleMax = 100  // characters of a task's title; ten of them fit into the smallest message of a service (Discord: 2,000)
	idMax    = 256  // bytes of an id; the engine's own limit
	pathMax  = 4096 // bytes; longer paths are not valid
)

// safePath leaves a path out that is too long, because a shortened one would name another file.
func safePath(path string) string {
	if len(path) > pathMax || !filepath.IsAbs(path) {
		return ""
	}
	return path
}

// harmless returns one line without control characters or characters that change the writing direction, of at
// most most characters.
func harmless(text string, most int) string {
	if len(text) > most*utf8Max {
		text = text[:most*utf8Max] // bounds the work
	}
	var b strings.Builder
	count := 0
	for _, c := range strings.ToValidUTF8(text, "\ufffd") {
		switch {
		case unicode.IsSpace(c):
			c = ' '
		case !unicode.IsPrint(c):
			c = unicode.ReplacementChar
		}
		if count++; count > most {
			return b.String() + "…"
		}
		b.WriteRune(c)
	}
	return b.String()
}

const utf8Max = 4 // bytes of a character

// plain is harmless text without markup. Every service has markup of its own (mentions such as @everyone and <!here>,
// links, bold, HTML), and some cannot be told to leave it alone. So the characters that begin it are replaced by
// characters that look like them. The marks of a link in running text are replaced too: the only links are ours.
func plain(text string, most int) string { return unmarked.Replace(harmless(text, most)) }

var unmarked = strings.NewReplacer(
	"<", "‹", ">", "›", "&", "＆", "@", "＠", "#", "＃", "*", "∗", "_", "ˍ", "~", "∼", "`", "'", "|", "¦", "[", "⟦", "]", "⟧", "\\", "⧵",
	"://", ":∕∕",
)
