package dispatchfolder

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/fairlead-dev/fairlead/internal/encode"
)

// part is what one file receives in a commit. Exactly one of Text, Move and Whole is set.
type part struct {
	File  string `json:"file"`            // relative to the dispatch folder
	At    int64  `json:"at,omitempty"`    // Text: the file's size before
	Text  []byte `json:"text,omitempty"`  // appended to the file
	Whole []byte `json:"whole,omitempty"` // replaces the file atomically
	Move  string `json:"move,omitempty"`  // File is renamed to this name, if the name is free
}

// lock takes the write lock.
func (d opened) lock() (unlock func(), err error) { return d.lockWithin(lockWait) }

func (d opened) lockWithin(wait time.Duration) (unlock func(), err error) {
	file, err := d.open(lockName, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, err
	}
	for deadline, pause := time.Now().Add(wait), time.Millisecond; ; pause = min(2*pause, 8*time.Millisecond) {
		err := again(func() error { return unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) })
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		if time.Now().After(deadline) {
			_ = file.Close()
			return nil, fmt.Errorf("another program has held %s for %v; end it (fuser %s shows its PID), then try again", file.Name(), wait,
				file.Name())
		}
		time.Sleep(pause)
	}
}

// commit writes the parts to the redo file, applies them, and empties the redo file. When it returns, they
// are on disk.
func (d opened) commit(parts []part) error {
	body := encode.JSON(parts)
	redo, err := d.open(redoName, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) { // the folder was created by another program
		if redo, err = d.open(redoName, unix.O_RDWR|unix.O_CREAT); err == nil {
			err = d.sync("")
		}
	}
	if err != nil {
		return err
	}
	defer redo.Close()
	info, err := redo.Stat()
	if err != nil {
		return fmt.Errorf("check %s: %w", redo.Name(), err)
	}
	if info.Size() > 0 {
		return fmt.Errorf("write the redo file: another program writes to %s without the lock; end it, then try again", redo.Name())
	}
	if err := write(redo, signed(body)); err != nil {
		return errors.Join(fmt.Errorf("write the redo file %s: %w", redo.Name(), err), redo.Truncate(0))
	}
	point("sync " + redoName)
	if err := fsync(int(redo.Fd())); err != nil {
		return errors.Join(fmt.Errorf("sync %s: %w", redo.Name(), err), redo.Truncate(0))
	}
	return d.carryOut(redo, parts)
}

// signed puts a checksum before the body, so that an incomplete write is recognised.
func signed(body []byte) []byte {
	sum := sha256.Sum256(body)
	return append(append([]byte(hex.EncodeToString(sum[:])+"\n"), body...), '\n')
}

// carryOut applies the parts, each once, and empties the redo file.
func (d opened) carryOut(redo *os.File, parts []part) error {
	var grown []*os.File
	defer func() {
		for _, file := range grown {
			_ = file.Close()
		}
	}()
	for _, p := range parts {
		switch {
		case p.Move != "":
			if err := d.move(p.File, p.Move); err != nil {
				return err
			}
		case p.Whole != nil:
			if err := d.replace(p.File, p.Whole); err != nil {
				return err
			}
		default:
			file, err := d.grow(p)
			if err != nil {
				return err
			}
			grown = append(grown, file)
		}
	}
	if err := d.syncAll(grown, parts); err != nil {
		return err
	}
	point("truncate " + redoName)
	if err := redo.Truncate(0); err != nil {
		return fmt.Errorf("empty %s: %w", redo.Name(), err)
	}
	return nil
}

// mkdirs creates missing folders: another program may have started a conversation without one, or removed
// one.
func (d opened) mkdirs(rel string) error {
	if rel == "" {
		return nil
	}
	if mode, err := d.kind(rel); err != nil || mode != 0 {
		return err
	}
	if err := d.mkdirs(folderOf(rel)); err != nil {
		return err
	}
	_, err := d.mkdir(rel)
	if err == nil && folderOf(rel) == conversationsName { // a conversation has an outputs folder
		_, err = d.mkdir(rel + "/" + outputsName)
	}
	return err
}

func folderOf(rel string) string {
	for i := len(rel) - 1; i >= 0; i-- {
		if rel[i] == '/' {
			return rel[:i]
		}
	}
	return ""
}

// syncAll syncs the files that grew and the folders with new names, in parallel, because the file system
// combines syncs.
func (d opened) syncAll(grown []*os.File, parts []part) error {
	folders := map[string]bool{}
	for _, p := range parts {
		if p.At > 0 {
			continue
		}
		for _, rel := range []string{p.File, p.Move} {
			for rel = folderOf(rel); rel != ""; rel = folderOf(rel) {
				folders[rel] = true
			}
		}
	}
	var all sync.WaitGroup
	errs := make(chan error, len(grown)+len(folders))
	for _, file := range grown {
		point("sync " + file.Name())
	}
	for _, file := range grown {
		all.Go(func() {
			if err := fsync(int(file.Fd())); err != nil {
				errs <- fmt.Errorf("sync %s: %w", file.Name(), err)
			}
		})
	}
	for rel := range folders {
		all.Go(func() {
			if err := d.sync(rel); err != nil {
				errs <- fmt.Errorf("sync the folder %s/%s: %w", d.path, rel, err)
			}
		})
	}
	all.Wait()
	close(errs)
	var failed []error
	for err := range errs {
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// grow appends the part of a text that the file does not hold yet. Other programs may have appended
// meanwhile, or an agent may have rewritten its dialogue.
func (d opened) grow(p part) (*os.File, error) {
	if err := d.mkdirs(folderOf(p.File)); err != nil {
		return nil, err
	}
	file, err := d.open(p.File, unix.O_RDWR|unix.O_APPEND|unix.O_CREAT)
	if err != nil {
		return nil, err
	}
	info, err := file.Stat()
	if err == nil && info.Size() != p.At {
		var from int64
		if info.Size() > p.At {
			from = p.At
		}
		var is []byte
		if is, err = io.ReadAll(io.NewSectionReader(file, from, info.Size()-from)); err == nil {
			p.Text = missing(is, p.Text)
		}
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("check %s: %w", file.Name(), err)
	}
	if len(p.Text) > 0 {
		if err := write(file, p.Text); err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("append to %s: %w; free disk space or fix the path; the next program that takes the lock continues from here", file.Name(), err)
		}
	}
	return file, nil
}

// missing returns the part of a text that must be appended to a file that holds is after the offset where the
// text was to begin.
func missing(is, text []byte) []byte {
	if bytes.Contains(is, text) {
		return nil
	}
	if bytes.HasPrefix(text, is) {
		return text[len(is):]
	}
	if is[len(is)-1] != '\n' { // an incomplete line of another program
		return append([]byte{'\n'}, text...)
	}
	return text
}

// replace replaces a whole file; a link under the name is replaced, not followed.
func (d opened) replace(rel string, content []byte) error {
	if err := d.mkdirs(folderOf(rel)); err != nil {
		return err
	}
	at, leaf, err := d.parent(rel)
	if err != nil {
		return err
	}
	defer at.close()
	beside := "." + leaf + ".new"
	_ = unix.Unlinkat(at.fd, beside, 0) // left by an earlier try
	file, err := at.open(beside, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := write(file, content); err != nil {
		return fmt.Errorf("write %s: %w", file.Name(), err)
	}
	if err := fsync(int(file.Fd())); err != nil {
		return fmt.Errorf("sync %s: %w", file.Name(), err)
	}
	point("rename " + rel)
	if err := again(func() error { return unix.Renameat(at.fd, beside, at.fd, leaf) }); err != nil {
		return fmt.Errorf("put %s/%s in place: %w", at.path, leaf, err)
	}
	return nil
}

// move renames a file inside the folder. If the new name exists, it was renamed before.
func (d opened) move(from, to string) error {
	for _, rel := range []string{from, to} {
		if err := d.mkdirs(folderOf(rel)); err != nil {
			return err
		}
	}
	at, leaf, err := d.parent(from)
	if err != nil {
		return err
	}
	defer at.close()
	there, name, err := d.parent(to)
	if err != nil {
		return err
	}
	defer there.close()
	if mode, err := there.kind(name); err != nil || mode != 0 {
		return err
	}
	point("move " + from)
	err = again(func() error { return unix.Renameat(at.fd, leaf, there.fd, name) })
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // another program removed it
		return fmt.Errorf("move %s/%s: %w", at.path, leaf, err)
	}
	return nil
}

// repair completes an interrupted commit. The caller holds the lock.
func (d opened) repair() error {
	redo, err := d.open(redoName, unix.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer redo.Close()
	content, err := io.ReadAll(io.LimitReader(redo, redoBytesMax))
	if err != nil {
		return fmt.Errorf("read %s: %w", redo.Name(), err)
	}
	if len(content) == 0 {
		return nil
	}
	parts, whole := partsOf(content)
	if !whole { // the redo file is incomplete: none of it was applied, and no caller got an answer
		if err := redo.Truncate(0); err != nil {
			return fmt.Errorf("empty %s: %w", redo.Name(), err)
		}
		return nil
	}
	return d.carryOut(redo, parts)
}

const redoBytesMax = 64 << 20 // a few lines, escaped and in base64; a larger file was not written by Fairlead

// partsOf parses a redo file; whole is false if it is incomplete.
func partsOf(content []byte) (parts []part, whole bool) {
	sum, body, ok := bytes.Cut(content, []byte("\n"))
	body, ended := bytes.CutSuffix(body, []byte("\n"))
	is := sha256.Sum256(body)
	if !ok || !ended || hex.EncodeToString(is[:]) != string(sum) || json.Unmarshal(body, &parts) != nil {
		return nil, false
	}
	return parts, true
}
