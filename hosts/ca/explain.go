package ca

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"
)

// PinnedTLS is the configuration of a host that knows nothing of the team but the fingerprint of its authority.
func PinnedTLS(fingerprint, server, team string, now func() time.Time) *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS13,
		ServerName:         server,
		InsecureSkipVerify: true, //nolint:gosec // VerifyConnection verifies the chain, from the authority that the invitation names
		VerifyConnection: func(state tls.ConnectionState) error {
			return verifyPinned(state.PeerCertificates, fingerprint, server, team, now())
		},
	}
}

// verifyPinned verifies that a chain begins at the authority with a fingerprint, and is for a server.
func verifyPinned(chain []*x509.Certificate, fingerprint, server, team string, now time.Time) error {
	roots := x509.NewCertPool()
	found := false
	for _, cert := range chain {
		if Fingerprint(cert) == fingerprint && cert.IsCA {
			roots.AddCert(cert)
			found = true
		}
	}
	if !found && len(chain) > 0 {
		return Explain(x509.UnknownAuthorityError{Cert: chain[0]}, team, now)
	}
	if len(chain) == 0 {
		return errors.New("the server shows no certificate; check the address")
	}
	_, err := chain[0].Verify(x509.VerifyOptions{
		Roots: roots, DNSName: server, CurrentTime: now,
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
	return Explain(err, team, now)
}

// Explain adds to an error of TLS, the network or the disk what to do about it. team is the name of the own team, now
// the time by the own clock. Other errors stay as they are.
func Explain(err error, team string, now time.Time) error {
	var wrongName x509.HostnameError
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var network *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &wrongName):
		return fmt.Errorf("the server is host %s, and its certificate is not for %q; use one of its names: %v %v: %w",
			name(wrongName.Certificate), wrongName.Host, wrongName.Certificate.DNSNames, wrongName.Certificate.IPAddresses, err)
	case errors.As(err, &unknown) && unknown.Cert != nil && team != "" && teamOf(unknown.Cert) == team:
		return fmt.Errorf("the server belongs to another team that is also called %s: its certificate authority is another one; check the address, or give one team another name: %w", team, err)
	case errors.As(err, &unknown):
		return fmt.Errorf("the server's certificate is not from the team's certificate authority, so this may be the wrong server; check the address, and ask for a new invitation: %w", err)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return cmp.Or(checkTime(invalid.Cert, now), err)
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("another program listens on this port; stop it, or choose another port: %w", err)
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return fmt.Errorf("the disk is full, and nothing was lost; free some space and try again: %w", err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("no program listens there; check the address, the port, and that the other host runs: %w", err)
	case errors.As(err, &network) && network.Timeout():
		return fmt.Errorf("the other host does not answer; check the address, and that no firewall blocks the connection: %w", err)
	}
	return err
}

func name(cert *x509.Certificate) string { return cert.Subject.CommonName }

// checkTime reports a certificate that is not valid at a time.
func checkTime(cert *x509.Certificate, now time.Time) error {
	const form = "2006-01-02 15:04 MST"
	switch {
	case now.Before(cert.NotBefore):
		return fmt.Errorf("the clock of this machine says %s, and the certificate of %s is valid from %s on; set the clock right",
			now.UTC().Format(form), name(cert), cert.NotBefore.UTC().Format(form))
	case now.After(cert.NotAfter):
		return fmt.Errorf("the certificate of %s ended at %s, and the clock of this machine says %s; set the clock if it is wrong, else join again with an invitation", name(cert), cert.NotAfter.UTC().Format(form), now.UTC().Format(form))
	}
	return nil
}
