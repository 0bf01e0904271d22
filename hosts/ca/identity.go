package ca

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"

	"github.com/nats-io/nkeys"
)

// Identity is a host's own keys, its certificate, and the authority that it trusts.
type Identity struct {
	Name string

	dir       string
	now       func() time.Time
	key       *ecdsa.PrivateKey
	nkey      nkeys.KeyPair
	public    string // of nkey
	authority *x509.Certificate
	cert      atomic.Pointer[tls.Certificate]
}

// NewIdentity makes the keys of a host that is about to join. Nothing is written before Install. A folder that
// belongs to a cluster already is refused.
func NewIdentity(dir, name string, now func() time.Time) (*Identity, error) {
	if !host.IsWord(name) {
		return nil, errors.New("the name of a host must have 1 to 63 characters a-z, 0-9 and -; choose another with --name")
	}
	if cert, err := loadCertificate(dir, certificateFile); err == nil {
		return nil, fmt.Errorf("this host belongs to the cluster of team %s as %s; leave that first", teamOf(cert), cert.Subject.CommonName)
	}
	id := &Identity{Name: name, dir: dir, now: now}
	var err error
	if id.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if id.nkey, err = nkeys.CreateUser(); err != nil {
		return nil, err
	}
	id.public, err = id.nkey.PublicKey()
	return id, err
}

// LoadIdentity reads what Install wrote.
func LoadIdentity(dir string, now func() time.Time) (*Identity, error) {
	id := &Identity{dir: dir, now: now}
	cert, err := loadCertificate(dir, certificateFile)
	if err != nil {
		return nil, err
	}
	if id.authority, err = loadCertificate(dir, authorityFile); err != nil {
		return nil, err
	}
	if id.key, err = loadKey(dir, keyFile); err != nil {
		return nil, err
	}
	seed, err := load(dir, seedFile)
	if err != nil {
		return nil, err
	}
	if id.nkey, err = nkeys.FromSeed(bytes.TrimSpace(seed)); err != nil {
		return nil, fmt.Errorf("%s is not a key; restore it from a backup, or join again", filepath.Join(dir, seedFile))
	}
	if id.public, err = id.nkey.PublicKey(); err != nil || !nkeys.IsValidPublicUserKey(id.public) {
		return nil, fmt.Errorf("%s is not the key of a host; restore it from a backup, or join again", filepath.Join(dir, seedFile))
	}
	id.Name = cert.Subject.CommonName
	return id, id.take(cert)
}

// String names the host, without its keys.
func (id *Identity) String() string { return "host " + id.Name }

// GoString is String.
func (id *Identity) GoString() string { return id.String() }

// PublicKey is the public half of the host's nkey.
func (id *Identity) PublicKey() string { return id.public }

// SignNonce signs a server's challenge, or a request to join.
func (id *Identity) SignNonce(nonce []byte) ([]byte, error) { return id.nkey.Sign(nonce) }

// Request is a certificate request for the names and addresses at which an engine host is reached.
func (id *Identity) Request(names []string) ([]byte, error) {
	template := &x509.CertificateRequest{Subject: pkix.Name{CommonName: id.Name}}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, template, id.key)
	if err != nil {
		return nil, fmt.Errorf("ask for the certificate of %s: %w", id.Name, err)
	}
	return der, nil
}

// Install takes the certificate that an authority has signed, and writes the files of the host. New connections
// use it at once. The certificate comes last: a folder without it belongs to no cluster. authority is that of the
// team; nil: the host knows it.
func (id *Identity) Install(certificate, authority []byte) error {
	cert, err := parseCertificate(certificate, "the certificate that was received")
	if err != nil {
		return err
	}
	if authority != nil {
		if id.authority, err = parseCertificate(authority, "the authority that was received"); err != nil {
			return err
		}
	}
	if err := id.take(cert); err != nil {
		return err
	}
	key, err := keyPEM(id.key)
	if err != nil {
		return err
	}
	seed, err := id.nkey.Seed()
	if err != nil {
		return err
	}
	for _, f := range []struct {
		name string
		text []byte
	}{{keyFile, key}, {seedFile, seed}, {authorityFile, certPEM(id.authority.Raw)}, {certificateFile, certificate}} {
		if err := store(id.dir, f.name, f.text); err != nil {
			return err
		}
	}
	return nil
}

// InstallAuthority writes the key of the authority that the host trusts, which [Authority.Key] gave, and returns the authority.
func (id *Identity) InstallAuthority(key []byte) (*Authority, error) {
	if err := store(id.dir, authorityKeyFile, key); err != nil {
		return nil, err
	}
	return Load(id.dir)
}

// take checks a certificate against the authority and the own key, and uses it from now on.
func (id *Identity) take(cert *x509.Certificate) error {
	roots := x509.NewCertPool()
	roots.AddCert(id.authority)
	_, err := cert.Verify(x509.VerifyOptions{
		Roots: roots, CurrentTime: id.now(),
		KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
	if err != nil {
		return Explain(fmt.Errorf("the certificate of %s: %w", id.Name, err), teamOf(id.authority), id.now())
	}
	if cert.Subject.CommonName != id.Name || !samePublic(id.key.Public(), cert.PublicKey) {
		return fmt.Errorf("the certificate of %s does not belong to its key; restore both from the same backup, or join again", id.Name)
	}
	id.cert.Store(&tls.Certificate{Certificate: [][]byte{cert.Raw, id.authority.Raw}, PrivateKey: id.key, Leaf: cert})
	return nil
}

// Next is what a host sends to have its certificate renewed: the present one, and a request for the next.
func (id *Identity) Next() (certificate, request []byte, err error) {
	request, err = id.Request(id.names())
	return certPEM(id.cert.Load().Leaf.Raw), request, err
}

// Now is the time by the clock that certificates are judged by.
func (id *Identity) Now() time.Time { return id.now() }

// Team is the name of the host's team.
func (id *Identity) Team() string { return teamOf(id.authority) }

// Authority is the fingerprint of the team's authority.
func (id *Identity) Authority() string { return Fingerprint(id.authority) }

// Expires is when the certificate ends.
func (id *Identity) Expires() time.Time { return id.cert.Load().Leaf.NotAfter }

// IsFor reports whether the certificate has these names and addresses, and no others.
func (id *Identity) IsFor(names []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(id.names())), slices.Sorted(slices.Values(names)))
}

// names are those of the certificate.
func (id *Identity) names() []string {
	leaf := id.cert.Load().Leaf
	names := slices.Clone(leaf.DNSNames)
	for _, ip := range leaf.IPAddresses {
		names = append(names, ip.String())
	}
	return names
}

// RenewalDue reports whether it is time to ask for the next certificate: when a third of its time is left.
func (id *Identity) RenewalDue() bool {
	leaf := id.cert.Load().Leaf
	return !id.now().Before(leaf.NotAfter.Add(-leaf.NotAfter.Sub(leaf.NotBefore) / 3))
}

// CheckClock reports a certificate that is not valid now, most likely since the machine's clock is wrong.
func (id *Identity) CheckClock() error { return checkTime(id.cert.Load().Leaf, id.now()) }

// TLS is the configuration of connections to servers of the team, and of its servers. A server takes only hosts with
// a certificate of the team. verify is asked for every peer, by the name of its host; nil admits each.
func (id *Identity) TLS(verify func(name string) error) *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(id.authority)
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		RootCAs:                roots,
		ClientCAs:              roots,
		ClientAuth:             tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true,
		Time:                   id.now,
		GetCertificate:         func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return id.cert.Load(), nil },
		GetClientCertificate:   func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return id.cert.Load(), nil },
	}
	if verify != nil {
		config.VerifyConnection = func(state tls.ConnectionState) error { return verify(PeerName(state)) }
	}
	return config
}

// JoinTLS is the configuration of the server at which hosts join: they have no certificate yet.
func (id *Identity) JoinTLS() *tls.Config {
	config := id.TLS(nil)
	config.ClientAuth, config.ClientCAs = tls.NoClientCert, nil
	return config
}

// PeerName is the name of the host at the other end; empty: it has shown no certificate.
func PeerName(state tls.ConnectionState) string {
	if len(state.PeerCertificates) == 0 {
		return ""
	}
	return state.PeerCertificates[0].Subject.CommonName
}

// Forget removes the files of the host, so that it can join another team. Those of an authority stay, as long as its
// key is there: see [ForgetAuthority].
func Forget(dir string) error {
	names := []string{certificateFile, seedFile, keyFile}
	if _, err := os.Stat(filepath.Join(dir, authorityKeyFile)); errors.Is(err, os.ErrNotExist) {
		names = append(names, authorityFile)
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("forget the cluster: %w", err)
		}
	}
	return nil
}

// ForgetAuthority removes the key of the authority: the host does not lead from now on.
func ForgetAuthority(dir string) error {
	if err := os.Remove(filepath.Join(dir, authorityKeyFile)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("forget the certificate authority: %w", err)
	}
	return nil
}
