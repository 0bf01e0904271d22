package dispatchfolder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
	"github.com/fairlead-dev/fairlead/machine/dispatch"
)

const (
	resultSuffix  = ".result.md"
	rankingSuffix = ".ranking.json"
	nameMax       = 255 // bytes of a file name, on common file systems
)

// InboxMessage is a message that was not answered yet.
type InboxMessage struct {
	Name  string // of the file
	Text  string
	Fault string // why it cannot be read; then Text is empty
}

// Inbox returns the unanswered messages of mode response, by name: files *.md and *.txt of inbox/ without a
// NAME.result.md, except the one that is being processed. It returns at most 1000. A message that is too
// long, not text, or a link has its Fault set, so that it can be put aside.
func (f *Folder) Inbox() ([]InboxMessage, error) {
	s, err := f.Session()
	if err != nil {
		return nil, err
	}
	d, err := openFolder(f.path)
	if err != nil {
		return nil, f.notASession(err)
	}
	defer d.close()
	names, err := d.names(inboxName, 10*inboxMax)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	slices.Sort(names)
	var all []InboxMessage
	for _, name := range names {
		if !isMessage(name) || slices.Contains(names, beside(name, resultSuffix)) || s.Open != nil && s.Open.Message == name {
			continue
		}
		if len(all) >= inboxMax {
			break
		}
		m := InboxMessage{Name: name}
		if text, whole, err := d.read(inboxName+"/"+name, inboxBytesMax); err != nil {
			m.Fault = err.Error()
		} else if !whole {
			m.Fault = fmt.Sprintf("the message is longer than %d bytes; write its content to a file and name the file", inboxBytesMax)
		} else {
			m.Text = strings.ToValidUTF8(string(trimmed(text)), "\uFFFD")
		}
		all = append(all, m)
	}
	return all, nil
}

// isMessage reports whether a name is a message's. Hidden files are still being written.
func isMessage(name string) bool {
	return !strings.HasPrefix(name, ".") && !strings.HasSuffix(name, resultSuffix) && (path.Ext(name) == ".md" || path.Ext(name) == ".txt")
}

// reply writes the result of a message beside it.
func (p *draft) reply(f *Folder, ch *dispatch.Change) error {
	r := ch.Body.Reply
	if !plainName(r.Message) {
		return fmt.Errorf("answer the message %q: it is not the name of a file in %s/", r.Message, inboxName)
	}
	done := "completed"
	if !r.OK {
		done = "failed"
	}
	text := fmt.Appendf(nil, "# Result: %s\n\n- Agent: %s\n- Task: %s\n- Time: %s\n- Conversation: %s\n- Outputs: %s\n\n%s\n",
		r.Message, r.Agent, done, ch.At.Local().Format(seedTime), dispatch.ConversationID(ch.Body.Conversation), f.Workspace(ch.Body.Conversation), strings.TrimRight(r.Text, "\n"))
	p.parts = append(p.parts, part{File: inboxName + "/" + beside(r.Message, resultSuffix), Whole: text})
	return nil
}

// aside moves a message that no agent matches into unmatched/, with the ranking.
func (p *draft) aside(a *dispatch.Aside) error {
	if !plainName(a.Message) {
		return fmt.Errorf("put the message %q aside: it is not the name of a file in %s/", a.Message, inboxName)
	}
	if _, err := p.d.mkdir(unmatchedName); err != nil {
		return err
	}
	name := a.Message
	for n := 2; ; n++ { // a file with that name may exist
		mode, err := p.d.kind(unmatchedName + "/" + name)
		if err != nil {
			return err
		}
		if mode == 0 {
			break
		}
		ext := path.Ext(a.Message)
		name = beside(strings.TrimSuffix(a.Message, ext), fmt.Sprintf("_%d%s", n, ext))
	}
	if a.Ranking != "" {
		p.parts = append(p.parts, part{File: unmatchedName + "/" + beside(name, rankingSuffix), Whole: []byte(strings.TrimRight(a.Ranking, "\n") + "\n")})
	}
	p.parts = append(p.parts, part{File: inboxName + "/" + a.Message, Move: unmatchedName + "/" + name})
	return nil
}

// beside returns the name of a file that belongs to another one, shortened to what the file system accepts: a
// commit that cannot be applied would block every later one.
func beside(name, suffix string) string {
	const most, whole = 200, nameMax - len("..new") // replace creates a temporary file first
	if len(name)+len(suffix) <= whole {
		return name + suffix
	}
	sum := sha256.Sum256([]byte(name))
	return clip.Within(name, most) + "-" + hex.EncodeToString(sum[:4]) + suffix
}

// plainName reports whether a name is that of a file in this folder.
func plainName(name string) bool {
	return name != "" && len(name) <= nameMax && !strings.HasPrefix(name, ".") && !strings.ContainsAny(name, "/\x00")
}
