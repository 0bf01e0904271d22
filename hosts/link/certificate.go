package link

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/ca"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

const askMax = 16 << 10 // bytes of a request for a certificate, and of its answer; they have 2 KiB

// Certificates renews the certificates of hosts that ask at wire.CertificateRoute. It is part of the Handler of a Hub, on
// the host that has the authority.
func Certificates(authority *ca.Authority, members cluster.Members, now func() time.Time) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := HostOf(r.Context())
		member, ok := members.Member(name)
		if !ok {
			wire.Fail(w, &wire.Problem{Code: wire.Refused, Why: "host " + name + " was removed, or has left" + comeBack})
			return
		}
		var ask wire.CertificateIn
		r.Body = http.MaxBytesReader(w, r.Body, askMax)
		if err := wire.ReadRequest(r, &ask); err != nil {
			wire.Fail(w,
				&wire.Problem{
					Code: wire.BadRequest,
					Why:  "the request for a certificate is not valid; use the same version of Fairlead on both hosts: " + err.Error(),
				})
			return
		}
		certificate, err := authority.Renew([]byte(ask.Certificate), ask.Request, member, now())
		if err != nil {
			wire.Fail(w, err)
			return
		}
		wire.Answer(w, wire.CertificateOut{Certificate: string(certificate)})
	})
}

// RenewCertificate gets the next certificate of a host. Later connections use it.
func (c *Conn) RenewCertificate(ctx context.Context, id *ca.Identity) error {
	if err := c.renew(ctx, id); err != nil {
		return fmt.Errorf("renew the certificate of %s, which ends on %s: %w", id.Name, id.Expires().Format(time.DateOnly), err)
	}
	return nil
}

func (c *Conn) renew(ctx context.Context, id *ca.Identity) error {
	certificate, request, err := id.Next()
	if err != nil {
		return err
	}
	client, base := c.Client()
	text, err := json.Marshal(wire.CertificateIn{Certificate: string(certificate), Request: request})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+wire.CertificateRoute, bytes.NewReader(text))
	if err != nil {
		return err
	}
	answer, err := client.Do(r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if err := wire.Check(answer); err != nil {
		return err
	}
	var out wire.CertificateOut
	answer.Body = http.MaxBytesReader(nil, answer.Body, askMax)
	if err := wire.ReadAnswer(answer, &out); err != nil {
		return err
	}
	return id.Install([]byte(out.Certificate), nil)
}
