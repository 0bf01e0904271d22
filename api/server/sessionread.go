package server

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"mime"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/api"
	"github.com/fairlead-dev/fairlead/core/dispatch"
	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/core/team"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	dispatchListMax          = 500     // sessions in one answer; older ones are not useful in a list
	dispatchKnownMax         = 20      // names in the answer to an unknown one
	dispatchConversationsMax = 200     // conversations in one answer
	dispatchFilesMax         = 200     // files of one conversation in a list
	dispatchOutputsMax       = 500     // the same, for its outputs
	dispatchHistoriesMax     = 64      // histories that are kept in memory; others are read again
	dialogueBytesMax         = 1 << 20 // of a dialogue in an answer: its end, which matters most to a reader
)

// dispatchHistories are the histories of the sessions that were requested. Each is read on from its last
// position.
type dispatchHistories struct {
	mu sync.Mutex
	of map[string]*lockedBook // by the folder's path
}

type lockedBook struct {
	mu      sync.Mutex
	history dispatchHistory
}

// read brings a session's history up to date.
func (b *dispatchHistories) read(f *dispatchfolder.Folder) (dispatchHistory, error) {
	b.mu.Lock()
	one := b.of[f.Path()]
	if one == nil {
		if len(b.of) >= dispatchHistoriesMax {
			clear(b.of)
		}
		if b.of == nil {
			b.of = map[string]*lockedBook{}
		}
		one = &lockedBook{}
		b.of[f.Path()] = one
	}
	b.mu.Unlock()
	one.mu.Lock()
	defer one.mu.Unlock()
	for {
		lines, next, err := f.Lines(one.history.next)
		if errors.Is(err, dispatchfolder.ErrShorter) && one.history.next > 0 {
			one.history = dispatchHistory{}
			continue
		}
		for _, l := range lines {
			one.history.take(l.Change, l.Foreign, l.Fault)
		}
		done := next == one.history.next
		one.history.next = next
		if err != nil || done {
			is := one.history
			is.lines, is.denials = slices.Clone(last(is.lines, dispatchLinesMax)), slices.Clone(last(is.denials, dispatchDenialsMax))
			return is, err
		}
	}
}

// found is a session and its name in this API.
type found struct {
	dispatchfolder.Found
	name  string
	known bool // the daemon has registered it
}

// sessionFolders returns the repository's sessions: the open ones first, then the newest. Those that
// the daemon has registered have their names from the journal.
func (s *Server) sessionFolders(ctx context.Context) ([]found, error) {
	taken, err := s.engine.Dispatch.Folders(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]string{}
	for _, view := range taken {
		names[view.Path] = view.Name
	}
	list, err := dispatchfolder.List(s.opts.Dir)
	if err != nil {
		return nil, err
	}
	of := map[string]int{}
	for _, one := range list {
		of[filepath.Base(one.Folder.Path())]++
	}
	all := make([]found, 0, len(list))
	for _, one := range slices.Backward(list) {
		at := one.Folder.Path()
		name, known := names[at]
		if !known {
			name = sessionName(at, of[filepath.Base(at)] > 1)
		}
		all = append(all, found{one, name, known})
	}
	slices.SortStableFunc(all, func(a, b found) int { return cmp.Compare(openFirst(a), openFirst(b)) })
	return all, nil
}

func openFirst(f found) int {
	if f.Open() {
		return 0
	}
	return 1
}

// sessionName turns a folder's path into a name for URLs; if another folder has the same name, a
// part of the path's hash distinguishes them.
func sessionName(at string, shared bool) string {
	base := filepath.Base(at)
	name := fileName(base)
	if len(name) > 64 {
		name = name[:64]
	}
	if name == base && !shared {
		return name
	}
	sum := sha256.Sum256([]byte(at))
	return name + "-" + hex.EncodeToString(sum[:3])
}

// sessionFolder finds a session by its name.
func (s *Server) sessionFolder(ctx context.Context, name string) (found, error) {
	all, err := s.sessionFolders(ctx)
	if err != nil {
		return found{}, err
	}
	var known []string
	for _, one := range all {
		if one.name == name {
			return one, nil
		}
		if len(known) < dispatchKnownMax {
			known = append(known, one.name)
		}
	}
	return found{}, &team.Unknown{What: "session", Name: name, Known: known}
}

// row returns a session as an element of a list.
func (f found) row() api.DispatchSession {
	is := f.Session
	row := api.DispatchSession{
		Name: f.name, Path: f.Folder.Path(), Mode: string(is.Mode), Host: cmp.Or(string(is.Host), "none"), Phase: string(is.Phase),
		Ended: is.Ended, Conversations: is.Made, Waiting: len(is.Waiting), Denied: is.Denied, Fault: f.Fault,
	}
	if f.Fault == "" {
		row.State = is.State()
	}
	if !is.Began.IsZero() {
		began := is.Began.UTC()
		row.Began, row.ChangedAt = &began, changedAt(f.Folder)
	}
	if is.Open != nil {
		row.Conversation = is.Open.ID()
	}
	return row
}

func handleDispatchSessions(ctx context.Context, s *Server, _ *nothing) (*api.DispatchSessions, error) {
	all, err := s.sessionFolders(ctx)
	if err != nil {
		return nil, err
	}
	answer := &api.DispatchSessions{Sessions: []api.DispatchSession{}, LeftOut: max(0, len(all)-dispatchListMax)}
	for _, one := range all[:min(len(all), dispatchListMax)] {
		answer.Sessions = append(answer.Sessions, one.row())
	}
	return answer, nil
}

func handleDispatchView(ctx context.Context, s *Server, in *DispatchPath) (*api.DispatchView, error) {
	f, err := s.sessionFolder(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	return s.viewOf(ctx, f)
}

// viewOf returns a session in full. If its history cannot be read, the view has the rest.
func (s *Server) viewOf(ctx context.Context, f found) (*api.DispatchView, error) {
	is := f.Session
	v := &api.DispatchView{
		Session: f.row(), Permissions: noNullRules(is.Permissions()), Agents: []api.DispatchAgent{}, AtWork: []api.DispatchTask{},
		Waiting: []api.DispatchWaiting{}, Conversations: []api.DispatchConversation{}, Denials: []api.DispatchDenial{},
		Layers: []api.DispatchLayer{}, WaitsFor: []string{}, Notes: []string{},
	}
	history, err := s.histories.read(f.Folder)
	switch {
	case f.Fault != "":
		v.Notes = append(v.Notes, f.Fault)
	case err != nil:
		v.Notes = append(v.Notes, err.Error())
	case history.fault != "":
		v.Notes = append(v.Notes, "A line of its history was ignored: "+history.fault)
	}
	v.Lines, v.LinesLeftOut = some(history.lines), history.count-len(history.lines)
	for _, d := range slices.Backward(history.denials) {
		v.Denials = append(v.Denials, d)
	}
	for _, a := range is.Agents {
		v.Agents = append(v.Agents, api.DispatchAgent{Name: a.Name, Description: a.Text, File: a.File})
	}
	if is.Open != nil {
		for _, t := range is.Open.Tasks {
			task := api.DispatchTask{ID: t.ID, Agent: t.Agent, Text: clip.Within(t.Text, dispatchTextMax), Began: t.Began.UTC()}
			if by, ok := is.Open.Task(t.By); ok {
				task.By = by.Agent
			}
			v.AtWork = append(v.AtWork, task)
		}
	}
	for _, w := range is.Waiting {
		waits := api.DispatchWaiting{Text: clip.Within(w.Text, dispatchTextMax), At: w.At.UTC()}
		if w.Match != nil {
			waits.Agent = w.Match.Agent
		}
		v.Waiting = append(v.Waiting, waits)
	}
	if history.input != "" {
		v.Ranking = &api.DispatchRanking{Input: history.input, Ranking: s.ranked(is, history.input)}
	}
	s.hosted(ctx, f, v)
	conversations, err := f.Folder.Conversations()
	if err != nil && f.Fault == "" {
		v.Notes = append(v.Notes, err.Error())
	}
	for _, c := range last(conversations, dispatchConversationsMax) {
		v.Conversations = append(v.Conversations, conversationOf(f.Folder, is, c))
	}
	slices.Reverse(v.Conversations)
	return v, nil
}

// hosted adds the daemon's state of a session whose agents it runs.
func (s *Server) hosted(ctx context.Context, f found, v *api.DispatchView) {
	if f.Session.Host != dispatch.Fairlead || !f.known {
		return
	}
	view, err := s.engine.Dispatch.Folder(ctx, f.name)
	if err != nil {
		v.Notes = append(v.Notes, err.Error())
		return
	}
	for _, l := range view.Layers {
		v.Layers = append(v.Layers, api.DispatchLayer(l))
	}
	for _, work := range slices.Sorted(maps.Keys(view.Waits)) {
		v.WaitsFor = append(v.WaitsFor, view.Waits[work])
	}
}

// noNullRules replaces null lists in permissions by empty ones.
func noNullRules(text json.RawMessage) policy.Rules {
	var rules policy.Rules
	_ = json.Unmarshal(text, &rules) // other programs may have written anything; then nothing is listed
	rules.CanWrite, rules.CannotWrite = some(rules.CanWrite), some(rules.CannotWrite)
	rules.CanExecute, rules.CannotExecute = some(rules.CanExecute), some(rules.CannotExecute)
	return rules
}

// changedAt is when a session's history last grew; nil: not known.
func changedAt(f *dispatchfolder.Folder) *time.Time {
	info, err := os.Lstat(filepath.Join(f.Path(), "state.jsonl"))
	if err != nil {
		return nil
	}
	at := info.ModTime().UTC()
	return &at
}

func conversationOf(f *dispatchfolder.Folder, is dispatch.Dispatch, c dispatchfolder.ConversationInfo) api.DispatchConversation {
	conversation := api.DispatchConversation{
		N: c.N, ID: c.ID, Summary: clip.Within(c.Summary, dispatchTextMax), Open: c.Open,
		Agents: some(c.Agents), Files: []api.DispatchFile{},
	}
	if !c.Began.IsZero() {
		began := c.Began.UTC()
		conversation.Began = &began
	}
	if c.Open && is.Open != nil {
		conversation.MoreFiles = is.Open.More
	}
	workspace := f.Workspace(c.N)
	for _, file := range c.Files {
		if len(conversation.Files) == dispatchFilesMax {
			conversation.MoreFiles++
			continue
		}
		out, _ := strings.CutPrefix(file.Path, workspace)
		if out == file.Path || path.IsAbs(out) {
			out = ""
		}
		conversation.Files = append(conversation.Files, api.DispatchFile{
			Path: file.Path, Output: filepath.ToSlash(out), Summary: file.Summary,
		})
	}
	return conversation
}

func handleDispatchConversation(ctx context.Context, s *Server, in *dispatchConversationIn) (*api.DispatchDialogue, error) {
	f, err := s.sessionFolder(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	conversations, err := f.Folder.Conversations()
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(conversations, func(c dispatchfolder.ConversationInfo) bool { return c.N == in.N })
	if at < 0 {
		return nil, unknownConversation(in.N, conversations)
	}
	conversation := &api.DispatchDialogue{
		DispatchConversation: conversationOf(f.Folder, f.Session, conversations[at]),
		Outputs:              []api.DispatchOutput{}, Notes: []string{},
	}
	text, err := f.Folder.Dialogue(in.N)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		conversation.Notes = append(conversation.Notes, "There is no dialogue.md.")
	case err != nil:
		conversation.Notes = append(conversation.Notes, err.Error())
	}
	if over := len(text) - dialogueBytesMax; over > 0 {
		over += clip.Torn(text[over:])
		conversation.DialogueLeftOut, text = int64(over), text[over:]
	}
	conversation.Dialogue = strings.ToValidUTF8(string(text), "\uFFFD")
	files, err := f.Folder.Outputs(in.N)
	if err != nil {
		conversation.Notes = append(conversation.Notes, err.Error())
	}
	conversation.OutputsLeftOut = max(0, len(files)-dispatchOutputsMax)
	for _, file := range files[:min(len(files), dispatchOutputsMax)] {
		conversation.Outputs = append(conversation.Outputs, api.DispatchOutput{
			Name: file.Name, Bytes: file.Bytes, ChangedAt: file.Time.UTC(),
		})
	}
	return conversation, nil
}

func unknownConversation(n int, conversations []dispatchfolder.ConversationInfo) error {
	var known []string
	for _, c := range last(conversations, dispatchKnownMax) {
		known = append(known, c.ID)
	}
	return &team.Unknown{What: "conversation", Name: dispatch.ConversationID(n), Known: known}
}

// handleDispatchFile serves an output file as bytes that a browser must not execute: its content is
// whatever an agent wrote.
func handleDispatchFile(s *Server, w http.ResponseWriter, r *http.Request, in *dispatchFileIn) {
	ctx, cancel := context.WithTimeout(r.Context(), api.AnswerMax)
	defer cancel()
	f, err := s.sessionFolder(ctx, in.Name)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	files, err := f.Folder.Outputs(in.N)
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	at := slices.IndexFunc(files, func(o dispatchfolder.OutputFile) bool { return o.Name == in.File })
	if at < 0 {
		api.NewProblem(http.StatusNotFound, "%s has no output of this name; request the conversation for the list",
			dispatch.ConversationID(in.N)).Write(w)
		return
	}
	body, err := f.Folder.Output(in.N, files[at].Name)
	if errors.Is(err, fs.ErrNotExist) {
		api.NewProblem(http.StatusNotFound, "%s no longer has an output of this name", dispatch.ConversationID(in.N)).Write(w)
		return
	}
	if err != nil {
		api.ProblemOf(err).Write(w)
		return
	}
	defer body.Close()
	size := files[at].Bytes // a file that grows meanwhile is sent up to this size
	if in.Limit > 0 {
		size = min(size, in.Limit)
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Content-Disposition", mime.FormatMediaType("attachment", map[string]string{"filename": fileName(path.Base(files[at].Name))}))
	h.Set("Content-Length", strconv.FormatInt(size, 10))
	h.Set("X-Fairlead-Size", strconv.FormatInt(files[at].Bytes, 10))
	// if it cannot be set, the server's own limit applies
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.waits.answer))
	// the client is gone, or the file has become shorter: the answer ends there
	_, _ = io.CopyN(w, body, size)
}
