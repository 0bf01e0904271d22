package invite

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/internal/clip"
)

// Joined is what a host knows after it has joined.
type Joined struct {
	Role    cluster.Role
	Servers []string
}

// Join lets a host join by a token. address is where an engine host is reached, HOST:PORT; empty: it is none. The
// files of the host are written when Join returns.
func Join(ctx context.Context, token Token, id *ca.Identity, address string, now func() time.Time) (Joined, error) {
	r := request{Form: requestForm, ID: token.ID, Secret: token.secret, Name: id.Name, Key: id.PublicKey(), Engine: address}
	var names []string
	if address != "" {
		names = slices.Compact([]string{id.Name, hostOf(address)})
	}
	var err error
	if r.CSR, err = id.Request(names); err != nil {
		return Joined{}, err
	}
	if r.Proof, err = id.SignNonce(r.CSR); err != nil {
		return Joined{}, err
	}
	a, err := ask(ctx, token, r, now)
	if err != nil {
		return Joined{}, fmt.Errorf("join team %s at %s: %w", token.Team, token.Address, ca.Explain(err, token.Team, now()))
	}
	if got, err := ca.ParseAuthority([]byte(a.Authority)); err != nil || got != token.Fingerprint {
		return Joined{},
			fmt.Errorf("join team %s: the answer has another certificate authority than the invitation; ask for a new invitation",
				token.Team)
	}
	if err := id.Install([]byte(a.Certificate), []byte(a.Authority)); err != nil {
		return Joined{}, fmt.Errorf("team %s has admitted this host, but its files could not be written: %w", token.Team, err)
	}
	if a.Role == cluster.Engine {
		if _, err := id.InstallAuthority(a.Key); err != nil {
			return Joined{},
				fmt.Errorf("team %s has admitted this engine host, but it cannot use the team's certificate authority: %w", token.Team, err)
		}
	}
	return Joined{a.Role, a.Servers}, nil
}

func ask(ctx context.Context, token Token, r request, now func() time.Time) (a answer, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinWithin)
	defer cancel()
	defer func() {
		var refused *Refused
		if err != nil && !errors.As(err, &refused) && now().After(token.Expires) {
			err = fmt.Errorf("the invitation expired at %s, so no host may be admitted there; make a new one with `host invite`: %w",
				token.Expires.Format(time.RFC3339), err)
		}
	}()
	config := ca.PinnedTLS(token.Fingerprint, hostOf(token.Address), token.Team, now)
	config.NextProtos = []string{joining}
	dialer := tls.Dialer{Config: config}
	conn, err := dialer.DialContext(ctx, "tcp", token.Address)
	if errors.Is(err, context.DeadlineExceeded) {
		return a, fmt.Errorf("the inviting host does not answer; check the address, and that no firewall blocks the connection: %w", err)
	}
	if errors.Is(err, syscall.ECONNREFUSED) {
		return a, fmt.Errorf("no program listens there; check the address and the port, and that Fairlead runs there; if another engine host leads now, make a new invitation on that one: %v", err) //nolint:errorlint // it is explained already
	}
	if errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) {
		return a, fmt.Errorf("a program listens there, but no invitation is open there; check the address, and make a new one with `host invite`: %w", err)
	}
	if err != nil {
		return a, err
	}
	defer conn.Close()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	text, err := json.Marshal(r)
	if err != nil {
		return a, err
	}
	if _, err := conn.Write(append(text, '\n')); err != nil {
		return a, err
	}
	line, err := readLine(conn, answerMax)
	if err != nil {
		return a, fmt.Errorf("no answer came: %w; try again with the same token", err)
	}
	if err := strict(line, &a); err != nil {
		return a, errors.New("the inviting host answers in another format; use the same version of Fairlead on both hosts")
	}
	if a.Code != "" {
		return a, &Refused{a.Code, clip.To(a.Why, whyMax)}
	}
	return a, nil
}
