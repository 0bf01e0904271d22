package link

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/hosts/wire"
)

// A host gets its next certificate over its connection, and connects with it after the first one has ended.
func TestRenewCertificate(t *testing.T) {
	t.Parallel()
	f := newTeam(t, "web")
	routes := http.NewServeMux()
	routes.Handle("POST "+wire.CertificateRoute, Certificates(f.authority, f, f.now))
	leader := f.join("a", cluster.Engine)
	h := f.listen(Options{Identity: leader, ping: quiet, Handler: routes})
	id := f.join("b", cluster.Host)
	c := f.dial(id, h.Address(), nil)
	if id.RenewalDue() {
		t.Error("a renewal is due at once")
	}
	first := id.Expires()
	f.move(300 * 24 * time.Hour)
	if !id.RenewalDue() {
		t.Error("no renewal is due after 300 days")
	}
	if err := c.RenewCertificate(t.Context(), f.join("c", cluster.Host)); err == nil ||
		!strings.Contains(err.Error(), "the present certificate is not that of host b") {
		t.Errorf("for another host: %v", err)
	}
	if err := c.RenewCertificate(t.Context(), id); err != nil || !id.Expires().After(first) || id.RenewalDue() {
		t.Errorf("%v: %v, then %v", err, first, id.Expires())
	}
	f.move(60 * 24 * time.Hour)
	own, request, err := leader.Next()
	if err == nil {
		m, _ := f.Member("a")
		own, err = f.authority.Renew(own, request, m, f.now()) // as the host with the authority does for itself
	}
	if err == nil {
		err = leader.Install(own, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.move(60 * 24 * time.Hour) // the first certificates have ended
	c = f.dial(id, h.Address(), nil)
	for _, body := range []string{"", "{", `{"certificate":"x"}`, `{"more":1}`, `{"certificate":"` + strings.Repeat("x", askMax) + `"}`} {
		if got := text(t, c.Client, wire.CertificateRoute, body); !strings.Contains(got, `"code":`) ||
			len(body) > askMax && !strings.Contains(got, "is not valid; use the same version") {
			t.Errorf("%.40q: %s", body, got)
		}
	}
	f.remove("b")
	var p *wire.Problem
	if err := c.RenewCertificate(t.Context(), id); !errors.As(err, &p) || p.Code != wire.Refused ||
		!strings.Contains(err.Error(), "renew the certificate of b, which ends on") {
		t.Error(err)
	}
}
