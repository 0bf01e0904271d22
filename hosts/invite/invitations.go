package invite

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	validFor  = 15 * time.Minute
	keptFor   = 24 * time.Hour // after its end: so long a late host learns that its invitation is used or expired
	openMax   = 64             // invitations at one time; a person makes one for each host
	bookMax   = 1024           // those that are kept
	labelsMax = 32             // as in core/host
)

// Invitation is what the store keeps of one. The secret is not among it.
type Invitation struct {
	ID      string       `json:"id"`
	Hash    string       `json:"hash"` // SHA-256 of the secret: with 256 random bits it needs no slow hash
	Role    cluster.Role `json:"role"`
	Labels  []string     `json:"labels,omitempty"`
	By      string       `json:"by"` // human/ann
	Expires time.Time    `json:"expires"`
	UsedBy  string       `json:"used_by,omitempty"` // the public key of the host
}

// Code is why a host was refused.
type Code string

const (
	WrongToken Code = "wrong_token"
	Expired    Code = "expired"
	Used       Code = "used"
	BadRequest Code = "bad_request"
	NotAdmit   Code = "not_admitted" // by the team, for example because the name is taken
	NotStored  Code = "not_stored"   // by a full disk, for example
)

// Refused is the answer to a host that may not join.
type Refused struct {
	Code Code
	Why  string // of NotAdmit and BadRequest, and of NotStored on the inviting host
}

func (r *Refused) Error() string {
	const again = "make a new one with `host invite`"
	switch r.Code {
	case WrongToken:
		return "the token does not belong to an invitation of this team; " + again
	case Expired:
		return "the invitation has expired, 15 minutes after it was made; " + again
	case Used:
		return "the invitation was used by another host; " + again
	case NotStored:
		return "the inviting host could not store that the invitation is used; free space on its disk and try again with the same token"
	}
	return "the team does not admit this host: " + r.Why
}

// Store holds the invitations of a team. Use OpenStore.
type Store struct {
	path string
	now  func() time.Time

	mu   sync.Mutex
	list []Invitation // oldest first
}

// OpenStore reads the invitations that are stored in a file, or begins with none.
func OpenStore(path string, now func() time.Time) (*Store, error) {
	b := &Store{path: path, now: now}
	return b, file.LoadJSON(path, &b.list)
}

// Invite makes an invitation. address is that of the server for joining.
func (b *Store) Invite(by string, role cluster.Role, labels []string, address string, authority *ca.Authority) (Token, error) {
	if role != cluster.Host && role != cluster.Engine {
		return Token{}, fmt.Errorf("the role of a host is %s or %s, not %q", cluster.Host, cluster.Engine, role)
	}
	if wrongLabels(labels) {
		return Token{}, fmt.Errorf("a host may have %d labels, each of 1 to 63 characters a-z, 0-9 and -", labelsMax)
	}
	random := make([]byte, idBytes+secretBytes)
	_, _ = rand.Read(random) // it never fails
	now := b.now()
	t := Token{
		ID: hex.EncodeToString(random[:idBytes]), secret: random[idBytes:], Team: authority.Team, Address: address,
		Fingerprint: authority.Fingerprint(),
		Role:        role, Labels: labels, Expires: now.Add(validFor).UTC().Truncate(time.Second),
	}
	if _, err := ParseToken(t.Text()); err != nil {
		return Token{}, fmt.Errorf("the address %q for hosts that join is not HOST:PORT", address)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(b.list), func(i Invitation) bool { return now.After(i.Expires.Add(keptFor)) })
	if open := b.open(now); open >= openMax {
		return Token{}, &Full{Open: open}
	}
	list = append(list, Invitation{ID: t.ID, Hash: hashOf(t.secret), Role: role, Labels: labels, By: by, Expires: t.Expires})
	list = list[max(0, len(list)-bookMax):]
	if err := b.store(list); err != nil {
		return Token{}, ca.Explain(err, "", now)
	}
	return t, nil
}

// Until is when the last invitation expires, used or not.
func (b *Store) Until() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	var until time.Time
	for _, i := range b.list {
		if i.Expires.After(until) {
			until = i.Expires
		}
	}
	return until
}

// Full refuses an invitation: as many are open as may be.
type Full struct{ Open int }

func (f *Full) Error() string {
	return fmt.Sprintf("%d invitations are open, which is the limit; wait until some expire", f.Open)
}

func (b *Store) open(now time.Time) int {
	n := 0
	for _, i := range b.list {
		if i.UsedBy == "" && now.Before(i.Expires) {
			n++
		}
	}
	return n
}

// Use marks an invitation as used by the host with a key, and then calls admit, one host at a time. The mark is on
// disk before. If admit refuses the host, the invitation can be used again. The same host may use it again in any case, until
// it expires, because it may not have received the answer.
func (b *Store) Use(id string, secret []byte, key string, admit func(Invitation) error) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := slices.IndexFunc(b.list, func(i Invitation) bool { return i.ID == id })
	if at < 0 || subtle.ConstantTimeCompare([]byte(b.list[at].Hash), []byte(hashOf(secret))) != 1 {
		return &Refused{Code: WrongToken}
	}
	switch is := b.list[at]; {
	case is.UsedBy != "" && is.UsedBy != key:
		return &Refused{Code: Used}
	case !b.now().Before(is.Expires):
		return &Refused{Code: Expired}
	case is.UsedBy == key:
		return admit(is)
	}
	list := slices.Clone(b.list)
	list[at].UsedBy = key
	if err := b.store(list); err != nil {
		return errors.Join(&Refused{Code: NotStored}, err)
	}
	refused := admit(list[at])
	if refused == nil {
		return nil
	}
	list = slices.Clone(list)
	list[at].UsedBy = ""
	return errors.Join(refused, b.store(list))
}

// store writes the list, and keeps it only if that succeeded.
func (b *Store) store(list []Invitation) error {
	if err := file.StoreJSON(b.path, list); err != nil {
		return fmt.Errorf("store the invitations: %w", err)
	}
	b.list = list
	return nil
}

func hashOf(secret []byte) string {
	sum := sha256.Sum256(secret)
	return hex.EncodeToString(sum[:])
}

func wrongLabels(labels []string) bool {
	return len(labels) > labelsMax || slices.ContainsFunc(labels, func(l string) bool { return !host.IsWord(l) })
}
