// Package login signs browsers in to Mission Control.
//
// A person gets a code with `fairlead open`. A code is valid once and for 30 seconds; the page exchanges it for a
// secret, which it keeps and sends as a header. Only the hash of a secret is stored. A secret is valid until a
// person revokes it, or until so many newer ones exist that the one unused for longest is dropped.
//
// The one promise: no code, used, old or guessed, gives a second secret, and a revoked secret ends the requests
// that it opened.
package login

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	CodeValid    = 30 * time.Second // long enough to open a browser, or to type the code on a phone
	LoginsMax    = 50               // browsers that are signed in at the same time
	NameCharsMax = 80               // of the name that a browser gives itself

	codesMax   = 16 // codes that are remembered, to say of an old one that it is old
	guessesMax = 10 // wrong codes within guessSpan; a code has 40 bits, so a guess is hopeless
	guessSpan  = CodeValid
	storeEvery = time.Hour // how exact the stored time of the last use is
	fileMax    = 1 << 20   // bytes; LoginsMax entries need less than a tenth
	fileFormat = 1
	codeChars  = 8
	alphabet   = "0123456789ABCDEFGHJKMNPQRSTVWXYZ" // without the letters that look like digits
)

// Fault is why a code is refused.
type Fault string

// The faults.
const (
	Wrong   Fault = "wrong"
	Used    Fault = "used"
	Old     Fault = "old"
	TooMany Fault = "too_many"
)

// Refused says that a code gives no secret.
type Refused struct{ Fault Fault }

func (r *Refused) Error() string {
	switch r.Fault {
	case Used:
		return "this login code was used already, and a code is valid once; if you did not use it, another program did: see `fairlead open --list`, and run `fairlead open` for a new code"
	case Old:
		return fmt.Sprintf("this login code is older than %s; run `fairlead open` for a new one", CodeValid)
	case TooMany:
		return fmt.Sprintf("%d wrong login codes came within %s, so none is accepted now; wait %s, then run `fairlead open` for a new one",
			guessesMax, guessSpan, guessSpan)
	default:
		return "this is not a login code of this daemon; run `fairlead open` in the repository for a new one"
	}
}

// Login is a browser that is signed in.
type Login struct {
	ID        string    `json:"id"`
	Name      string    `json:"name"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at"`
}

// entry is a login with the hash of its secret.
type entry struct {
	Login
	Hash string `json:"hash"` // SHA-256, hexadecimal

	stored time.Time // UsedAt in the file
	ctx    context.Context
	end    context.CancelFunc
}

// content is what is stored.
type content struct {
	Format int      `json:"format"`
	Next   int      `json:"next"` // number of the next login
	Logins []*entry `json:"logins"`
}

type code struct {
	hash  [sha256.Size]byte
	until time.Time
	used  bool
}

// Logins are the browsers that are signed in to one daemon. Its methods may be called at the same time.
type Logins struct {
	path string
	log  *slog.Logger

	mu      sync.Mutex
	next    int
	logins  map[string]*entry // by hash
	codes   []code            // the newest last
	guesses []time.Time       // of wrong codes within guessSpan
}

// Open reads the logins that are stored at path. A file that other users could have read or written, or that came
// with a repository, is not used; then no browser is signed in.
func Open(path string, log *slog.Logger) (*Logins, error) {
	l := &Logins{path: path, log: log, next: 1, logins: map[string]*entry{}}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return l, nil
	case err != nil:
		return nil, fmt.Errorf("read the logins: %w", err)
	case !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || info.Size() > fileMax:
		log.Warn("the stored logins are not used, because other users could have changed them; sign in again with fairlead open", "path",
			path)
		return l, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the logins: %w", err)
	}
	var f content
	if err := json.Unmarshal(text, &f); err != nil || f.Format != fileFormat || len(f.Logins) > LoginsMax {
		log.Warn("the stored logins are damaged and not used; sign in again with fairlead open", "path", path, "error", err)
		return l, nil
	}
	l.next = max(1, f.Next)
	for _, e := range f.Logins {
		if e == nil || len(e.Hash) != hex.EncodedLen(sha256.Size) {
			continue
		}
		e.stored = e.UsedAt
		e.ctx, e.end = context.WithCancel(context.Background())
		l.logins[e.Hash] = e
	}
	return l, nil
}

// NewCode returns a code, and until when it is valid.
func (l *Logins) NewCode() (string, time.Time) {
	var random [codeChars]byte
	_, _ = rand.Read(random[:]) // it never fails
	for i, b := range random {
		random[i] = alphabet[b&31]
	}
	text := string(random[:])
	l.mu.Lock()
	defer l.mu.Unlock()
	c := code{hash: sha256.Sum256([]byte(text)), until: time.Now().Add(CodeValid)}
	l.codes = append(l.codes[max(0, len(l.codes)-codesMax+1):], c)
	return text[:codeChars/2] + "-" + text[codeChars/2:], c.until
}

// plainCode is a code as it was made: people type it in small letters, with spaces, and O for 0.
func plainCode(text string) string {
	return strings.Map(func(r rune) rune {
		switch r = unicode.ToUpper(r); {
		case r == '-' || unicode.IsSpace(r):
			return -1
		case r == 'O':
			return '0'
		case r == 'I' || r == 'L':
			return '1'
		}
		return r
	}, text)
}

// Redeem exchanges a code for a secret. name is how the browser describes itself. A refusal is a *Refused.
func (l *Logins) Redeem(given, name string) (secret string, _ Login, _ error) {
	sum := sha256.Sum256([]byte(plainCode(given)))
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	l.guesses = slices.DeleteFunc(l.guesses, func(at time.Time) bool { return now.Sub(at) >= guessSpan })
	if len(l.guesses) >= guessesMax {
		return "", Login{}, &Refused{TooMany}
	}
	i := slices.IndexFunc(l.codes, func(c code) bool { return c.hash == sum })
	fault := Fault("")
	switch {
	case i < 0:
		fault = Wrong
	case l.codes[i].used:
		fault = Used
	case !now.Before(l.codes[i].until):
		fault = Old
	}
	if fault != "" {
		l.guesses = append(l.guesses, now)
		return "", Login{}, &Refused{fault}
	}
	l.codes[i].used = true
	random := make([]byte, 32)
	_, _ = rand.Read(random) // it never fails
	secret = base64.RawURLEncoding.EncodeToString(random)
	e := &entry{
		Login: Login{ID: fmt.Sprintf("l%d", l.next), Name: plainName(name), CreatedAt: now.UTC(), UsedAt: now.UTC()},
		Hash:  hashOf(secret),
	}
	e.ctx, e.end = context.WithCancel(context.Background())
	before := l.next
	l.next++
	l.logins[e.Hash] = e
	dropped := l.dropOldest()
	if err := l.store(); err != nil {
		l.next = before
		delete(l.logins, e.Hash)
		for _, d := range dropped {
			l.logins[d.Hash] = d
		}
		return "", Login{}, err
	}
	for _, d := range dropped {
		d.end()
		l.log.Info("a browser was signed out, because the limit is reached and it was unused for longest", "login", d.ID, "name", d.Name,
			"limit", LoginsMax)
	}
	return secret, e.Login, nil
}

// dropOldest takes away what exceeds the limit.
func (l *Logins) dropOldest() (dropped []*entry) {
	for len(l.logins) > LoginsMax {
		oldest := slices.MinFunc(l.sorted(), func(a, b *entry) int { return a.UsedAt.Compare(b.UsedAt) })
		delete(l.logins, oldest.Hash)
		dropped = append(dropped, oldest)
	}
	return dropped
}

// Check returns the login of a secret. The context ends when the login is revoked.
func (l *Logins) Check(secret string) (Login, context.Context, bool) {
	hash := hashOf(secret)
	l.mu.Lock()
	defer l.mu.Unlock()
	e := l.logins[hash]
	if e == nil {
		return Login{}, nil, false
	}
	e.UsedAt = time.Now().UTC()
	if e.UsedAt.Sub(e.stored) > storeEvery {
		if err := l.store(); err != nil {
			l.log.Error("the time of a login's last use could not be stored", "error", err)
		}
	}
	return e.Login, e.ctx, true
}

// List returns all logins, the oldest first.
func (l *Logins) List() []Login {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := []Login{}
	for _, e := range l.sorted() {
		list = append(list, e.Login)
	}
	return list
}

// Revoke ends a login and the requests that it opened; false: there is none with that id.
func (l *Logins) Revoke(id string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for hash, e := range l.logins {
		if e.ID != id {
			continue
		}
		delete(l.logins, hash)
		if err := l.store(); err != nil {
			l.logins[hash] = e // it would be valid again after a restart
			return false, err
		}
		e.end()
		return true, nil
	}
	return false, nil
}

// sorted must be called with mu held.
func (l *Logins) sorted() []*entry {
	all := make([]*entry, 0, len(l.logins))
	for _, e := range l.logins {
		all = append(all, e)
	}
	slices.SortFunc(all, func(a, b *entry) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return strings.Compare(a.Hash, b.Hash)
	})
	return all
}

// store writes the file; it must be called with mu held.
func (l *Logins) store() error {
	all := l.sorted()
	if err := file.StoreJSON(l.path, content{Format: fileFormat, Next: l.next, Logins: all}); err != nil {
		return fmt.Errorf("store the logins: %w", err)
	}
	for _, e := range all {
		e.stored = e.UsedAt
	}
	return nil
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// plainName bounds a browser's name, and leaves out characters that could do harm where it is printed.
func plainName(name string) string {
	name = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, strings.ToValidUTF8(name, ""))
	if chars := []rune(name); len(chars) > NameCharsMax {
		name = string(chars[:NameCharsMax])
	}
	if name = strings.TrimSpace(name); name == "" {
		return "a browser"
	}
	return name
}
