package invite

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/internal/clip"

	"github.com/nats-io/nkeys"
)

const (
	requestMax  = 16 << 10         // bytes of a request to join, which has less than 1 KiB
	answerMax   = 64 << 10         // of the answer: two certificates and some addresses
	joinWithin  = 10 * time.Second // for the whole conversation at the server for joining
	callersMax  = 16               // at one time; more are closed at once
	whyMax      = 300              // bytes of the team's reason
	requestForm = 1                // version of the format
)

// request is what a host sends to join.
type request struct {
	Form   int    `json:"form"`
	ID     string `json:"id"`
	Secret []byte `json:"secret"`
	Name   string `json:"name"`
	Key    string `json:"key"`              // public half of its nkey
	CSR    []byte `json:"csr"`              // for its TLS key
	Proof  []byte `json:"proof"`            // CSR, signed with its nkey
	Engine string `json:"engine,omitempty"` // HOST:PORT of a host that is to be an engine host
}

// answer is what the server for joining says: a code, or the rest.
type answer struct {
	Code        Code         `json:"code,omitempty"`
	Why         string       `json:"why,omitempty"`
	Certificate string       `json:"certificate,omitempty"`
	Authority   string       `json:"authority,omitempty"`
	Key         []byte       `json:"key,omitempty"` // of the authority, for an engine host
	Role        cluster.Role `json:"role,omitempty"`
	Servers     []string     `json:"servers,omitempty"`
}

// Joiner is a host with a valid invitation, which the team is asked to admit.
type Joiner struct {
	cluster.Member
	Labels  []string
	Invited string // by whom
	Address string // of an engine host, HOST:PORT
}

// Server is where hosts join. Its fields are set before Serve.
type Server struct {
	Store     *Store
	Authority *ca.Authority
	Members   cluster.Members
	Servers   []string                            // addresses of the cluster's servers: tls://a:4222
	Admit     func(context.Context, Joiner) error // the same host may be admitted twice; an error is the team's refusal, shown to the host
	Now       func() time.Time                    // the clock of certificates and invitations
	Log       *slog.Logger
}

// Serve answers hosts until the last invitation has expired, or the context ends. It closes the listener, and returns
// when all callers are answered.
func (d *Server) Serve(ctx context.Context, listener net.Listener, config *tls.Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	context.AfterFunc(ctx, func() { listener.Close() })
	go d.closeInTime(ctx, cancel)
	places := make(chan struct{}, callersMax)
	var callers sync.WaitGroup
	defer callers.Wait()
	for {
		conn, err := listener.Accept()
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("listen for hosts that join: %w", err)
		}
		select {
		case places <- struct{}{}:
		default:
			conn.Close()
			continue
		}
		callers.Go(func() {
			defer func() { <-places }()
			defer conn.Close()
			ctx, cancel := context.WithTimeout(ctx, joinWithin)
			defer cancel()
			stop := context.AfterFunc(ctx, func() { conn.Close() })
			defer stop()
			if err := d.answer(ctx, tls.Server(conn, config)); err != nil {
				d.Log.Warn("a host did not join", "from", conn.RemoteAddr().String(), "error", err)
			}
		})
	}
}

// closeInTime ends the server for joining when no invitation is left. One that is made meanwhile keeps it open.
func (d *Server) closeInTime(ctx context.Context, cancel func()) {
	for {
		left := d.Store.Until().Sub(d.Now())
		if left <= 0 {
			cancel()
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(left):
		}
	}
}

// answer takes one request. Its error is for the log; the caller gets a code.
func (d *Server) answer(ctx context.Context, conn *tls.Conn) error {
	if err := conn.HandshakeContext(ctx); err != nil {
		return err
	}
	line, err := readLine(conn, requestMax)
	if err != nil {
		return fmt.Errorf("its request did not arrive: %w", err)
	}
	a, failure := d.admit(ctx, line, conn.RemoteAddr())
	var refused *Refused
	if errors.As(failure, &refused) {
		a = answer{Code: refused.Code, Why: clip.To(refused.Why, whyMax)}
	} else if failure != nil {
		a = answer{Code: NotAdmit, Why: "its inviting host failed, see its log"}
	}
	text, err := json.Marshal(a)
	if err == nil {
		_, err = conn.Write(append(text, '\n'))
	}
	return errors.Join(failure, err, conn.Close())
}

// admit judges a request: the invitation, then the name, the names in the certificate, and the team.
func (d *Server) admit(ctx context.Context, line []byte, from net.Addr) (answer, error) {
	r, err := parseRequest(line)
	if err != nil {
		return answer{}, err
	}
	a := answer{Authority: string(d.Authority.PEM()), Servers: d.Servers}
	err = d.Store.Use(r.ID, r.Secret, r.Key, func(i Invitation) error {
		if m, ok := d.Members.Member(r.Name); ok && m.Key != r.Key {
			return &Refused{
				NotAdmit,
				"another host of the team is called " + r.Name + "; choose another name with --name, or remove that host first",
			}
		}
		if at, is := (cluster.EngineHost{Name: r.Name, Address: r.Engine}), i.Role == cluster.Engine; is != (r.Engine != "") {
			return &Refused{
				BadRequest,
				"the invitation and the command differ about whether it is an engine host: `host invite --engine` and `host join --engine` belong together",
			}
		} else if _, err := at.Routes(); is && err != nil {
			return &Refused{BadRequest, err.Error()}
		}
		caller := net.ParseIP(hostOf(from.String()))
		certificate, err := d.Authority.Sign(r.CSR, r.Name, i.Role, caller.Equal, d.Now())
		if err == nil && i.Role == cluster.Engine {
			a.Key, err = d.Authority.Key()
		}
		if err == nil {
			err = d.Admit(ctx, Joiner{cluster.Member{Name: r.Name, Role: i.Role, Key: r.Key}, i.Labels, i.By, r.Engine})
		}
		if err != nil {
			a.Key = nil
			return &Refused{NotAdmit, err.Error()}
		}
		a.Certificate, a.Role = string(certificate), i.Role
		return nil
	})
	return a, err
}

// parseRequest reads a request, and checks that its sender has both keys. Its bytes are untrusted.
func parseRequest(line []byte) (request, error) {
	var r request
	if err := strict(line, &r); err != nil || r.Form != requestForm {
		return r, &Refused{BadRequest, "it sends another kind of request; use the same version of Fairlead on both hosts"}
	}
	if !host.IsWord(r.Name) {
		return r, &Refused{BadRequest, "its name must have 1 to 63 characters a-z, 0-9 and -"}
	}
	csr, err := ca.ParseRequest(r.CSR)
	if err != nil || csr.Subject.CommonName != r.Name {
		return r, &Refused{BadRequest, "its certificate request is not valid; use the same version of Fairlead on both hosts"}
	}
	key, err := nkeys.FromPublicKey(r.Key)
	if err != nil || !nkeys.IsValidPublicUserKey(r.Key) || key.Verify(r.CSR, r.Proof) != nil {
		return r, &Refused{BadRequest, "it does not prove that it has its key; use the same version of Fairlead on both hosts"}
	}
	return r, nil
}

func hostOf(address string) string {
	name, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return name
}

// readLine reads one line of limited length.
func readLine(r io.Reader, most int64) ([]byte, error) {
	line, err := bufio.NewReader(io.LimitReader(r, most)).ReadBytes('\n')
	if errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("the connection ended within a line, or the line has more than %d bytes", most)
	}
	return line, err
}
