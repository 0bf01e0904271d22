package dispatchfolder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/core/change"
	"github.com/fairlead-dev/fairlead/core/dispatch"
)

// OutputFile is a file in a conversation's outputs.
type OutputFile struct {
	Name  string // relative to outputs/, with slashes
	Bytes int64
	Time  time.Time // modification time
}

// Outputs returns the regular files in a conversation's outputs/, by name: at most 2000, 16 folders deep.
// Links are left out.
func (f *Folder) Outputs(n int) ([]OutputFile, error) {
	d, err := openFolder(f.path)
	if err != nil {
		return nil, f.notASession(err)
	}
	defer d.close()
	return d.outputs(n, outputsMax)
}

func (d opened) outputs(n, most int) ([]OutputFile, error) {
	at, err := d.below(conversationPath(n) + "/" + outputsName)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer at.close()
	var files []OutputFile
	err = at.walk("", 0, func(name string, st *unix.Stat_t) (more bool) {
		files = append(files, OutputFile{Name: name, Bytes: st.Size, Time: time.Unix(st.Mtim.Unix())})
		return len(files) < most
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	slices.SortFunc(files, func(a, b OutputFile) int { return strings.Compare(a.Name, b.Name) })
	return files, err
}

var errEnough = errors.New("enough")

// walk returns the regular files below a folder.
func (d opened) walk(below string, depth int, each func(name string, st *unix.Stat_t) (more bool)) error {
	names, err := d.names("", outputsMax)
	if err != nil {
		return err
	}
	slices.Sort(names)
	for _, name := range names {
		var st unix.Stat_t
		if err := again(func() error { return unix.Fstatat(d.fd, name, &st, unix.AT_SYMLINK_NOFOLLOW) }); err != nil {
			continue // it was removed meanwhile
		}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFREG:
			if !each(below+name, &st) {
				return errEnough
			}
		case unix.S_IFDIR:
			next, err := d.below(name)
			if err != nil || depth >= outputsDepthMax {
				next.close()
				continue
			}
			err = next.walk(below+name+"/", depth+1, each)
			next.close()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// Output opens a file of a conversation's outputs for reading; the caller closes it. name is relative to
// outputs/, with slashes; nothing outside can be reached, and no link is followed.
func (f *Folder) Output(n int, name string) (io.ReadCloser, error) {
	d, err := openFolder(f.path)
	if err != nil {
		return nil, f.notASession(err)
	}
	defer d.close()
	at, err := d.below(conversationPath(n) + "/" + outputsName)
	if err != nil {
		return nil, err
	}
	defer at.close()
	file, err := at.open(name, unix.O_RDONLY)
	if err != nil {
		return nil, fmt.Errorf("open the output %q of %s: %w", name, dispatch.ConversationID(n), err)
	}
	return file, nil
}

// addOutputs adds files of outputs/ that were not reported to a summary: programs that an agent ran created
// them. If outputs/ cannot be listed, the summary stays as it is.
func (f *Folder) addOutputs(d opened, sum *dispatch.Summary) {
	files, _ := d.outputs(sum.Conversation, outputsMax)
	inside := "/" + conversationPath(sum.Conversation) + "/" + outputsName + "/"
	known := map[string]bool{}
	for _, file := range sum.Files { // compared by the end of the path, because the folder's path may be spelled in two ways
		if _, name, ok := strings.Cut(filepath.ToSlash(filepath.Clean(file.Path)), inside); ok {
			known[name] = true
		}
	}
	for _, file := range files {
		if known[file.Name] || len(sum.Files) >= closingFilesMax {
			continue
		}
		path := f.Workspace(sum.Conversation) + filepath.FromSlash(file.Name)
		sum.Files = append(sum.Files, dispatch.File{Path: path, Summary: "found in outputs"})
	}
}

// parts returns what each file receives for some changes, and applies each change to s. When a conversation
// ends, files of outputs/ that were not reported are added to its summary. state.jsonl comes last, so that a
// reader finds the other files complete.
func (f *Folder) parts(d opened, s *dispatch.Dispatch, changes []change.Change) ([]part, error) {
	p := &draft{d: d, at: map[string]int{}}
	var state []byte
	for i := range changes {
		ch := &changes[i]
		if sum := change.As[dispatch.Body](ch.Body).Summary; sum != nil {
			f.addOutputs(d, sum)
		}
		s.Apply(*ch)
		line := jsonLine(f.recordOf(*s, *ch))
		if len(line) > lineBytesMax {
			return nil, fmt.Errorf("write the change to %s: the line would have %d bytes; the maximum is %d; answer the waiting inputs first, or shorten the text", stateName, len(line), lineBytesMax)
		}
		state = append(state, line...)
		if err := p.files(f, ch); err != nil {
			return nil, err
		}
	}
	if err := p.add(stateName, state); err != nil {
		return nil, err
	}
	return p.parts, nil
}

// draft collects parts, one for each file.
type draft struct {
	d     opened
	parts []part
	at    map[string]int // index into parts by file
}

// add appends a text to a file's part. An incomplete line of another program is ended first.
func (p *draft) add(rel string, text []byte) error {
	if i, ok := p.at[rel]; ok {
		p.parts[i].Text = append(p.parts[i].Text, text...)
		return nil
	}
	size, half, err := p.d.end(rel)
	if err != nil {
		return err
	}
	if half {
		text = append([]byte{'\n'}, text...)
	}
	p.at[rel] = len(p.parts)
	p.parts = append(p.parts, part{File: rel, At: size, Text: text})
	return nil
}

// end returns a file's size, and whether its last line has no line end.
func (d opened) end(rel string) (size int64, half bool, err error) {
	file, err := d.open(rel, unix.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, false, nil
	}
	if err != nil {
		return 0, false, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil || info.Size() == 0 {
		return 0, false, err
	}
	var last [1]byte
	if _, err := file.ReadAt(last[:], info.Size()-1); err != nil {
		return 0, false, fmt.Errorf("read the end of %s: %w", file.Name(), err)
	}
	return info.Size(), last[0] != '\n', nil
}

// files adds a change's parts for the files other than state.jsonl.
func (p *draft) files(f *Folder, ch *change.Change) error {
	body := change.As[dispatch.Body](ch.Body)
	if n := body.Conversation; n > 0 && len(body.Entries) > 0 {
		rel := conversationPath(n) + "/" + dialogueName
		var text []byte
		if mode, err := p.d.kind(rel); err != nil {
			return err
		} else if _, begun := p.at[rel]; mode == 0 && !begun {
			text = dialogueTitle(n)
		}
		for _, e := range body.Entries {
			text = appendEntry(text, ch.At, e)
		}
		if err := p.add(rel, text); err != nil {
			return err
		}
	}
	if body.Summary != nil {
		m := messageOf(body.Summary)
		line := jsonLine(m)
		has, err := p.d.hasLogged(conversationNumber(m.ID)) // by the seed's logger, before the end
		if err != nil {
			return err
		}
		if !has {
			if err := p.add(messagesName, line); err != nil {
				return err
			}
		}
	}
	if body.Reply != nil {
		if err := p.reply(f, ch.At, body); err != nil {
			return err
		}
	}
	if body.Aside != nil {
		return p.aside(body.Aside)
	}
	return nil
}
