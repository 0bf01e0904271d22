package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

const (
	alternatesMax = 5       // git's own limit of repositories that borrow from each other
	smallFileMax  = 1 << 20 // of attributes and ignored names that a person has
	scratchSuffix = ".git-"
)

// Room says what git gets to see in a view.
type Room struct {
	Repo    Git      // the person's repository: its settings about files count, and commits go to it
	Folder  string   // the folder that an agent may write
	Write   bool     // git writes in it, too
	Borrows []string // git folders whose objects are read
}

// Inside is git in a view of its own, for all that an agent may write. Outside of one, git opens no folder and no git directory of
// an agent's. In the view are that folder, the objects of Fairlead's repositories, and the settings of the person about files, such
// as line ends. No setting there names a program: filters, hooks and drivers are left out.
//
// One shell does what it is told, so that several commands need one view. Where no view can be made, Landlock holds it, and where
// there is none, only the settings do: then `unheld` names git's row.
type Inside struct {
	Head string            // the commit that is checked out; empty: none
	On   string            // the branch that HEAD is on; empty: it is on none
	Refs map[string]string // where the clone's refs are, but those of its origin

	Scratch string // a folder of Fairlead's, at the same path in the view; git's index and new objects are in it
	By      sandbox.Mechanism

	room  Room
	cmd   *exec.Cmd
	to    *os.File // what the shell reads, and after that the git that it starts
	from  *os.File
	words file.Capped // what the shell complains
	stop  func()
}

// wayHere is how this process makes views; nil: it has made none yet.
var wayHere atomic.Pointer[sandbox.Ability]

// Enter makes the view.
func Enter(ctx context.Context, r Room) (in *Inside, err error) {
	in = &Inside{room: r, words: file.Capped{Max: gitErrorMax}}
	if err = in.prepare(ctx); err == nil {
		err = in.begin(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make a view for git in %s: %w", r.Folder, err), in.removeScratch())
	}
	return in, nil
}

// begin starts the shell in the best way that there is. A weaker one is taken only if trials say that this machine has no better one:
// an agent may be the cause of an error.
func (in *Inside) begin(ctx context.Context) error {
	if way := wayHere.Load(); way != nil {
		return in.start(ctx, *way)
	}
	way := sandbox.Ways()[0]
	err := in.start(ctx, way)
	if err != nil {
		best := sandbox.Abilities()
		if ctx.Err() != nil || best.By == way.By && best.Users == way.Users && best.Processes == way.Processes {
			return cmp.Or(ctx.Err(), err)
		}
		way = best
		err = in.start(ctx, way)
	}
	if err == nil {
		wayHere.Store(&way)
	}
	return err
}

// prepare makes the scratch folder: a git directory that borrows all objects, and the settings.
func (in *Inside) prepare(ctx context.Context) (err error) {
	folder, err := filepath.EvalSymlinks(filepath.Dir(in.room.Folder))
	if err != nil {
		return err
	}
	name := "." + filepath.Base(in.room.Folder) + scratchSuffix
	removeLeft(folder, name)
	if in.Scratch, err = os.MkdirTemp(folder, name+strconv.Itoa(os.Getpid())+"-"); err != nil {
		return err
	}
	text, err := in.room.Repo.Run(ctx, GitWorkMax, AsStored, nil, "config", "--null", "--get-regexp",
		`^(core\.(autocrlf|eol|filemode|symlinks|ignorecase|precomposeunicode|excludesfile|attributesfile)|user\.(name|email)|extensions\.objectformat)$`)
	if err != nil && !GitHasNone(err) {
		return err
	}
	format, config := "", []string{
		"core.fsync", "none", "core.excludesFile", in.path("exclude"), "core.attributesFile", in.path("attributes"), "safe.directory", "*",
		"uploadpack.allowAnySHA1InWant", "true",
	}
	lists := map[string]string{"core.excludesfile": userFile("ignore"), "core.attributesfile": userFile("attributes")}
	for _, entry := range Zeroed(text) {
		key, value, has := strings.Cut(entry, "\n")
		if !has {
			value = "true"
		}
		switch _, is := lists[key]; {
		case key == "extensions.objectformat":
			format = value
		case is:
			lists[key] = inHome(value)
		default:
			config = append(config, key, value)
		}
	}
	common, err := in.room.Repo.gitFolder(ctx)
	if err != nil {
		return err
	}
	made := map[string]string{
		"config": configText(config), "git/HEAD": "ref: refs/heads/none\n", "git/objects/info/alternates": "",
		"git/refs/none": "",
	}
	made["git/config"] = "[core]\n\tbare = false\n\trepositoryformatversion = 0\n"
	if format != "" {
		made["git/config"] = "[core]\n\tbare = false\n\trepositoryformatversion = 1\n" +
			configText([]string{"extensions.objectFormat", format})
	}
	for name, from := range map[string]string{
		"exclude": lists["core.excludesfile"], "attributes": lists["core.attributesfile"],
		"git/info/exclude": filepath.Join(common, "info", "exclude"), "git/info/attributes": filepath.Join(common, "info", "attributes"),
	} {
		if made[name], err = smallFile(from); err != nil {
			return err
		}
	}
	for _, dir := range in.objects() {
		made["git/objects/info/alternates"] += dir + "\n"
	}
	for name, text := range made {
		if err := os.MkdirAll(filepath.Dir(in.path(name)), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(in.path(name), []byte(text), 0o600); err != nil {
			return err
		}
	}
	return os.Remove(in.path("git/refs/none"))
}

func (in *Inside) path(name string) string {
	return filepath.Join(in.Scratch, filepath.FromSlash(name))
}

// Index is the index of Files.
func (in *Inside) Index() string { return in.path("index") }

// gitFolder is the git folder of a repository.
func (g Git) gitFolder(ctx context.Context) (string, error) {
	plain := filepath.Join(g.Dir, ".git")
	if info, err := os.Lstat(plain); err == nil && info.IsDir() {
		return filepath.EvalSymlinks(plain)
	}
	said, err := g.Ask(ctx, "rev-parse", "--path-format=absolute", "--git-common-dir")
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(strings.TrimSuffix(said, "\n"))
}

// objects are the folders of objects: the clone's, and those that it may borrow. What the clone itself names as borrowed is not asked.
func (in *Inside) objects() (all []string) {
	if info, err := os.Lstat(filepath.Join(in.room.Folder, ".git")); err == nil && info.IsDir() {
		all = []string{filepath.Join(in.room.Folder, ".git", "objects")}
	}
	for _, dir := range in.room.Borrows {
		all = append(all, borrowed(filepath.Join(dir, "objects"), alternatesMax)...)
	}
	return all
}

// borrowed is a folder of objects of a person's repository, or of Fairlead's, and those that it borrows.
func borrowed(dir string, more int) []string {
	all := []string{dir}
	text, _ := smallFile(filepath.Join(dir, "info", "alternates"))
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line != "" && !filepath.IsAbs(line) {
			line = filepath.Join(dir, line)
		}
		if line != "" && more > 0 {
			all = append(all, borrowed(filepath.Clean(line), more-1)...)
		}
	}
	return all
}

// removeLeft removes scratch folders of processes that died.
func removeLeft(folder, name string) {
	found, _ := filepath.Glob(filepath.Join(folder, globbed(name)+"*"))
	for _, dir := range found {
		number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), name), "-")
		if pid, err := strconv.Atoi(number); err == nil && syscall.Kill(pid, 0) == syscall.ESRCH {
			_ = os.RemoveAll(dir) // the next one tries again
		}
	}
}

// globbed is a text that stands for itself in a pattern of filepath.Glob.
func globbed(text string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(text)
}

// configText is a file of git's configuration: keys and values in turns. It is one write, where `git config` would be a process for each.
func configText(pairs []string) string {
	var b strings.Builder
	escape, before := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`), ""
	for pair := range slices.Chunk(pairs, 2) {
		section, key, _ := strings.Cut(pair[0], ".")
		if last := strings.LastIndexByte(key, '.'); last >= 0 { // what is between the dots may have any character
			section, key = fmt.Sprintf(`%s "%s"`, section, escape.Replace(key[:last])), key[last+1:]
		}
		if section != before {
			fmt.Fprintf(&b, "[%s]\n", section)
			before = section
		}
		fmt.Fprintf(&b, "\t%s = \"%s\"\n", key, escape.Replace(pair[1]))
	}
	return b.String()
}

// userFile is a file of the person's git, where no setting names another.
func userFile(name string) string {
	if dir := os.Getenv("XDG_CONFIG_HOME"); dir != "" {
		return filepath.Join(dir, "git", name)
	}
	return inHome("~/.config/git/" + name)
}

func inHome(name string) string {
	if rest, is := strings.CutPrefix(name, "~/"); is {
		return filepath.Join(os.Getenv("HOME"), rest)
	}
	return name
}

// smallFile is the content of a file of the person's; empty: there is none.
func smallFile(name string) (string, error) {
	f, err := os.Open(name)
	if name == "" || errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) || errors.Is(err, fs.ErrPermission) {
		return "", nil // git reads on, too
	} else if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, smallFileMax+1))
	if len(text) > smallFileMax {
		err = fmt.Errorf("%s has more than %s", name, file.Size(smallFileMax))
	}
	return string(text), err
}

// view is what the shell gets of the machine.
func (in *Inside) view() sandbox.View {
	access := sandbox.Read
	if in.room.Write {
		access = sandbox.Write
	}
	given := []sandbox.Place{placeOf(in.room.Folder, access), placeOf(in.Scratch, sandbox.Write)}
	for _, dir := range in.objects() {
		if rel, err := filepath.Rel(in.room.Folder, dir); err != nil || !filepath.IsLocal(rel) {
			given = append(given, placeOf(dir, sandbox.Read))
		}
	}
	return sandbox.GitView(in.room.Folder, given...)
}

// placeOf is a place at its own path, also if a link that the person made is a part of that path.
func placeOf(path string, access sandbox.Access) sandbox.Place {
	p := sandbox.Place{Path: path, Access: access}
	if real, err := filepath.EvalSymlinks(path); err == nil && real != path {
		p.From = real
	}
	return p
}

// start starts the shell.
func (in *Inside) start(ctx context.Context, way sandbox.Ability) (err error) {
	argv, attr := []string{"/bin/sh"}, &syscall.SysProcAttr{}
	if in.By = way.By; way.By != sandbox.ByNothing {
		exe, err := os.Executable()
		if err != nil {
			return err
		}
		v := way.Apply(in.view())
		if argv, err = sandbox.WrapView(exe, argv, v); err != nil {
			return err
		}
		attr = v.Attr()
	}
	attr.Setpgid = true
	ctx, cancel := context.WithTimeout(ctx, GitWorkMax)
	in.words = file.Capped{Max: gitErrorMax}
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.SysProcAttr, cmd.WaitDelay, cmd.Stderr, cmd.Dir = attr, gitGoMax, &in.words, in.room.Folder
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "HOME=/", "GIT_CONFIG_GLOBAL=" + in.path("config"), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_ATTR_NOSYSTEM=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "GIT_EDITOR=true", "GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1",
		"GIT_NO_REPLACE_OBJECTS=1",
		"GIT_LITERAL_PATHSPECS=1", "GIT_OPTIONAL_LOCKS=0", "GIT_CEILING_DIRECTORIES=" + filepath.Dir(in.room.Folder),
	}
	theirIn, to, err := os.Pipe()
	if err != nil {
		cancel()
		return err
	}
	from, theirOut, err := os.Pipe()
	if err != nil {
		cancel()
		return errors.Join(err, theirIn.Close(), to.Close())
	}
	cmd.Stdin, cmd.Stdout = theirIn, theirOut
	err = errors.Join(cmd.Start(), theirIn.Close(), theirOut.Close())
	if err != nil {
		cancel()
		return errors.Join(err, to.Close(), from.Close())
	}
	in.cmd, in.to, in.from, in.stop = cmd, to, from, cancel
	if _, err = in.line("true"); err != nil {
		err = errors.Join(err, in.end())
	}
	return err
}

var errEnded = errors.New("the view of git has ended")

// line lets the shell do one line, and returns its exit code. What another program has left in the pipe is no answer.
func (in *Inside) line(command string) (code int, err error) {
	if _, err := io.WriteString(in.to, "\n"+command+"\necho = $?\n"); err != nil {
		return 0, err
	}
	return in.answer()
}

const answerMax = 64 << 10 // bytes of what the shell answers: a few

func (in *Inside) answer() (code int, err error) {
	var line []byte
	one := make([]byte, 1) // no byte more: what follows is for another program
	for len(line) < answerMax {
		if n, err := in.from.Read(one); n == 0 || err != nil {
			return 0, fmt.Errorf("the view of git has ended: %s", strings.TrimSpace(in.words.String()))
		}
		if one[0] != '\n' {
			line = append(line, one[0])
			continue
		}
		if word, is := bytes.CutPrefix(line, []byte("= ")); is {
			return strconv.Atoi(string(word))
		}
		line = line[:0]
	}
	return 0, errors.New("the shell in the view of git does not answer")
}

// end ends the shell, and what is left of it.
func (in *Inside) end() error {
	if in.cmd == nil {
		return nil
	}
	err := errors.Join(in.to.Close(), in.from.Close())
	_ = in.cmd.Cancel() // its commands have ended
	_ = in.cmd.Wait()
	in.stop()
	in.cmd = nil
	return err
}

// killAfter kills what runs in the view when the context ends, until stop is called. The context's end may come while the view
// ends, which forgets its process.
func (in *Inside) killAfter(ctx context.Context) (stop func() bool) {
	cmd := in.cmd
	return context.AfterFunc(ctx, func() { _ = cmd.Cancel() })
}

func (in *Inside) removeScratch() error {
	if in.Scratch == "" {
		return nil
	}
	return os.RemoveAll(in.Scratch)
}

// Close ends the view. What was not fetched is gone.
func (in *Inside) Close() error { return errors.Join(in.end(), in.removeScratch()) }

// run runs git in the view with further variables of the environment, and returns its output as [Git.Run] does.
func (in *Inside) run(ctx context.Context, env []string, feed func(io.Writer) error, args ...string) (string, error) {
	if in.cmd == nil {
		return "", errEnded
	}
	input := os.DevNull
	if feed != nil {
		input = in.path("in")
		f, err := os.OpenFile(input, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return "", err
		}
		if err := errors.Join(feed(f), f.Close()); err != nil {
			return "", err
		}
	}
	words := slices.Clone(env)
	for i, pair := range words {
		name, value, _ := strings.Cut(pair, "=")
		words[i] = name + "=" + quoted(value)
	}
	for _, arg := range slices.Concat([]string{"git"}, gitSettings, []string{"-c", "core.fsync=none"}, args) {
		words = append(words, quoted(arg))
	}
	done := in.killAfter(ctx)
	defer done()
	code, err := in.line(fmt.Sprintf("%s <%s >%s 2>%s", strings.Join(words, " "), quoted(input), quoted(in.path("out")),
		quoted(in.path("err"))))
	if err != nil {
		return "", errors.Join(cmp.Or(ctx.Err(), err), in.end())
	}
	said, err := capped(in.path("out"), gitOutputMax)
	if err == nil && code != 0 {
		var complained string
		if complained, err = capped(in.path("err"), gitErrorMax); err == nil || complained != "" {
			complained = strings.TrimSpace(strings.TrimPrefix(complained, "fatal: "))
			err = &gitFault{
				What: what(args), Said: cmp.Or(strings.ReplaceAll(complained, "\n", "; "), "exit status "+strconv.Itoa(code)),
				Code: code,
			}
		}
	}
	return said, err
}

// capped is the content of a file, or its begin with an error.
func capped(name string, most int64) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(text)) > most {
		text, err = text[:most], fmt.Errorf("git printed more than %d bytes", most)
	}
	return string(text), err
}

// pathList is a list of paths as git reads it.
func pathList(paths []string) string {
	list := slices.Clone(paths)
	for i, p := range list {
		if strings.ContainsRune(p, ':') || strings.HasPrefix(p, `"`) {
			list[i] = GitPath(p)
		}
	}
	return strings.Join(list, ":")
}

func quoted(word string) string { return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'" }

// Files runs git on the folder's files, with a git directory and an index of Fairlead's.
func (in *Inside) Files(ctx context.Context, feed func(io.Writer) error, args ...string) (string, error) {
	return in.FilesAs(ctx, nil, feed, args...)
}

// FilesAs is Files with further variables of the environment.
func (in *Inside) FilesAs(ctx context.Context, env []string, feed func(io.Writer) error, args ...string) (string, error) {
	env = append([]string{"GIT_DIR=" + in.path("git"), "GIT_WORK_TREE=" + in.room.Folder, "GIT_INDEX_FILE=" + in.Index()}, env...)
	said, err := in.run(ctx, env, feed, args...)
	return strings.TrimSuffix(said, "\n"), err
}

// Commit makes a commit by Fairlead, which no ref names yet.
func (in *Inside) Commit(ctx context.Context, env []string, text, tree string, parents ...string) (string, error) {
	args := []string{"commit-tree", "-F", "-"} // an argument has at most 128 KiB on Linux
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	return in.FilesAs(ctx, append(byFairlead(), env...), feed(strings.TrimSuffix(text, "\n")+"\n"), append(args, tree)...)
}

// Own runs git with the clone's own git directory, and its settings. What it borrows is found whatever the clone says.
func (in *Inside) Own(ctx context.Context, args ...string) (string, error) {
	return in.OwnFrom(ctx, nil, args...)
}

// OwnFrom is Own with an input.
func (in *Inside) OwnFrom(ctx context.Context, feed func(io.Writer) error, args ...string) (string, error) {
	said, err := in.run(ctx, []string{
		"GIT_DIR=" + filepath.Join(in.room.Folder, ".git"), "GIT_WORK_TREE=" + in.room.Folder,
		"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + pathList(in.objects()),
	}, feed, args...)
	return strings.TrimSuffix(said, "\n"), err
}

func (in *Inside) readRefs(ctx context.Context) error {
	said, err := in.Own(ctx, "for-each-ref", "--format=%(objectname) %(refname)")
	if err != nil {
		return err
	}
	if in.On, err = in.Own(ctx, "symbolic-ref", "--quiet", "HEAD"); err != nil && !GitHasNone(err) {
		return err
	}
	head := "ref: " + in.On
	if in.On == "" {
		if in.Head, err = in.Own(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
			return err
		}
		head = in.Head
	}
	in.Refs = map[string]string{}
	var packed strings.Builder
	for line := range strings.Lines(said) {
		id, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if name == in.On {
			in.Head = id
		}
		if !strings.HasPrefix(name, "refs/remotes/") {
			in.Refs[name] = id
			packed.WriteString(id + " " + name + "\n")
		}
	}
	shallow := quoted(filepath.Join(in.room.Folder, ".git", "shallow"))
	if _, err := in.line(fmt.Sprintf("if [ -f %s ]; then cat %[1]s > %s; fi", shallow, quoted(in.path("git/shallow")))); err != nil {
		return errors.Join(err, in.end())
	}
	return errors.Join(os.WriteFile(in.path("git/packed-refs"), []byte(packed.String()), 0o600),
		os.WriteFile(in.path("git/HEAD"), []byte(head+"\n"), 0o600))
}

// Fetch reads commits into the person's repository, where git checks them. Each spec names what is fetched, and the ref for it.
// The protocol is the oldest one: git's program for descriptors waits for the end of both sides with a newer one.
func (in *Inside) Fetch(ctx context.Context, specs ...string) error {
	if in.cmd == nil {
		return errEnded
	}
	repo, served := in.room.Repo, make(chan error, 1)
	reads, heldReads, err := in.pipe("served", os.O_RDONLY)
	if err != nil {
		return err
	}
	defer heldReads.Close()
	defer reads.Close()
	writes, heldWrites, err := in.pipe("asked", os.O_WRONLY)
	if err != nil {
		return err
	}
	defer heldWrites.Close()
	defer writes.Close()
	repo.pipes, repo.held = []*os.File{reads, writes}, []*os.File{heldReads, heldWrites}
	done := in.killAfter(ctx)
	defer done()
	if _, err := in.line(fmt.Sprintf("exec 3<%s 4>%s", quoted(in.path("asked")), quoted(in.path("served")))); err != nil {
		return errors.Join(err, in.end())
	}
	go func() {
		_, err := in.line(fmt.Sprintf("git upload-pack --strict %s <&3 >&4 3<&- 4>&-; exec 3<&- 4>&-", quoted(in.path("git"))))
		served <- err
	}()
	_, err = repo.Run(ctx, GitWorkMax, AsStored, feed(strings.Join(specs, "\n")+"\n"), "-c", "fetch.fsckObjects=true", "-c",
		"protocol.fd.allow=always", "-c", "protocol.version=0", "-c", "core.alternateRefsCommand=true",
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules", "--no-auto-maintenance", "--stdin", "--",
		"fd::3,4")
	if fault := <-served; fault != nil {
		return errors.Join(err, fault, in.end())
	}
	return err
}

// pipe makes a pipe with a name, and opens our end. As long as held is open, no side waits for the other one, or sees its end too early.
func (in *Inside) pipe(name string, way int) (pipe, held *os.File, err error) {
	if err := os.Remove(in.path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	if err := syscall.Mkfifo(in.path(name), 0o600); err != nil {
		return nil, nil, err
	}
	if held, err = os.OpenFile(in.path(name), os.O_RDWR, 0); err != nil {
		return nil, nil, err
	}
	if pipe, err = os.OpenFile(in.path(name), way, 0); err != nil {
		held.Close()
	}
	return pipe, held, err
}
