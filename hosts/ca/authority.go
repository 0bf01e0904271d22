package ca

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fairlead-dev/fairlead/core/host"
	"github.com/fairlead-dev/fairlead/core/host/cluster"
	"github.com/fairlead-dev/fairlead/internal/file"
)

const (
	authorityFor   = 10 * 365 * 24 * time.Hour
	certificateFor = 365 * 24 * time.Hour
	backdated      = time.Hour // certificates are valid from so long ago: clocks of hosts differ
	fileMax        = 64 << 10  // bytes of a file with a key or certificates; they have 1 KiB
	namesMax       = 16        // names and addresses in one certificate
)

// The files of a host's folder, .fairlead/cluster. The first two belong together, so does the third with the rest.
const (
	authorityKeyFile = "authority.key" // only on hosts that can lead
	authorityFile    = "authority.crt"
	keyFile          = "host.key"
	certificateFile  = "host.crt"
	seedFile         = "host.nk"
)

// Authority signs the certificates of a team's hosts.
type Authority struct {
	Team string

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Fingerprint is the SHA-256 of a certificate, in hexadecimal digits. It names an authority.
func Fingerprint(cert *x509.Certificate) string {
	sum := sha256.Sum256(cert.Raw)
	return hex.EncodeToString(sum[:])
}

// ParseAuthority returns the fingerprint of an authority's certificate in PEM.
func ParseAuthority(text []byte) (fingerprint string, err error) {
	cert, err := parseCertificate(text, "the certificate authority")
	if err != nil {
		return "", err
	}
	return Fingerprint(cert), nil
}

// Create makes the authority of a team, in a folder that has none.
func Create(dir, team string, now time.Time) (*Authority, error) {
	if !host.IsWord(team) {
		return nil, fmt.Errorf("the name of the team must have 1 to 63 characters a-z, 0-9 and -")
	}
	if _, err := os.Stat(filepath.Join(dir, authorityFile)); err == nil {
		return nil, fmt.Errorf("%s has a certificate authority: this host belongs to a cluster; leave that first", dir)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "Fairlead", Organization: []string{team}},
		NotBefore:             now.Add(-backdated),
		NotAfter:              now.Add(authorityFor),
		KeyUsage:              x509.KeyUsageCertSign,
		BasicConstraintsValid: true,
		IsCA:                  true,
		MaxPathLenZero:        true,
	}
	if template.SerialNumber, err = serial(); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make the certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	a := &Authority{Team: team, cert: cert, key: key}
	text, err := keyPEM(key)
	if err == nil {
		err = store(dir, authorityKeyFile, text)
	}
	if err == nil {
		err = store(dir, authorityFile, a.PEM())
	}
	return a, err
}

// Load reads the authority of a folder.
func Load(dir string) (*Authority, error) {
	cert, err := loadCertificate(dir, authorityFile)
	if err != nil {
		return nil, err
	}
	key, err := loadKey(dir, authorityKeyFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("the key of the certificate authority is not on this host, so it cannot invite; restore %s from a backup or from another engine host", filepath.Join(dir, authorityKeyFile))
	}
	if err != nil {
		return nil, err
	}
	if !samePublic(key.Public(), cert.PublicKey) || !cert.IsCA {
		return nil, fmt.Errorf("%s and %s in %s do not belong together; restore both from the same backup", authorityFile, authorityKeyFile,
			dir)
	}
	return &Authority{Team: teamOf(cert), cert: cert, key: key}, nil
}

// Fingerprint names the authority.
func (a *Authority) Fingerprint() string { return Fingerprint(a.cert) }

// PEM is the authority's certificate, which every host knows.
func (a *Authority) PEM() []byte { return certPEM(a.cert.Raw) }

// Key is the authority's key in PEM, for another host that can lead. It signs certificates with any name.
func (a *Authority) Key() ([]byte, error) { return keyPEM(a.key) }

// String names the authority, without its key.
func (a *Authority) String() string { return "authority of " + a.Team + " " + a.Fingerprint()[:16] }

// GoString is String.
func (a *Authority) GoString() string { return a.String() }

// Sign certifies the key of a request for a host that the team has admitted. A request of an engine host may list
// names and addresses; allowed says which addresses it may have. A name is its own or below it.
func (a *Authority) Sign(request []byte, name string, role cluster.Role, allowed func(net.IP) bool, now time.Time) ([]byte, error) {
	csr, err := ParseRequest(request)
	if err != nil {
		return nil, err
	}
	if csr.Subject.CommonName != name {
		return nil, fmt.Errorf("the certificate request names another host; send the name of the host that asks")
	}
	if left := a.cert.NotAfter.Sub(now); left < certificateFor {
		return nil, fmt.Errorf("the certificate authority ends on %s, too early for another certificate; make a new cluster with `cluster init`", a.cert.NotAfter.Format(time.DateOnly))
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: name, Organization: []string{a.Team}},
		NotBefore:   now.Add(-backdated),
		NotAfter:    now.Add(certificateFor),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if role == cluster.Engine {
		template.ExtKeyUsage = append(template.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
		template.DNSNames, template.IPAddresses = csr.DNSNames, csr.IPAddresses
		for _, dns := range csr.DNSNames {
			if dns != name && !strings.HasPrefix(dns, name+".") {
				return nil, fmt.Errorf("the certificate of host %s can have the name %s and names that begin with %s. only; name the host after its machine", name, name, name)
			}
		}
		for _, ip := range csr.IPAddresses {
			if !allowed(ip) {
				return nil, fmt.Errorf("the certificate of host %s cannot have the address %s, because it does not connect from there; use a name", name, ip)
			}
		}
	}
	if template.SerialNumber, err = serial(); err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, csr.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("certify host %s: %w", name, err)
	}
	return certPEM(der), nil
}

// Renew certifies a host again, with the names and addresses of its present certificate at most.
func (a *Authority) Renew(certificate, request []byte, member cluster.Member, now time.Time) ([]byte, error) {
	old, err := parseCertificate(certificate, "the present certificate")
	if err != nil {
		return nil, err
	}
	if old.CheckSignatureFrom(a.cert) != nil || old.Subject.CommonName != member.Name {
		return nil, fmt.Errorf("the present certificate is not that of host %s; join again", member.Name)
	}
	allowed := func(ip net.IP) bool { return slices.ContainsFunc(old.IPAddresses, ip.Equal) }
	return a.Sign(request, member.Name, member.Role, allowed, now)
}

// ParseRequest reads a certificate request, which proves that the sender has the key. Its bytes are untrusted.
func ParseRequest(der []byte) (*x509.CertificateRequest, error) {
	bad := errors.New("the certificate request is not valid; use the same version of Fairlead on both hosts")
	csr, err := x509.ParseCertificateRequest(der)
	if err != nil || csr.CheckSignature() != nil {
		return nil, bad
	}
	key, isECDSA := csr.PublicKey.(*ecdsa.PublicKey)
	if !isECDSA || key.Curve != elliptic.P256() || !host.IsWord(csr.Subject.CommonName) ||
		len(csr.DNSNames)+len(csr.IPAddresses) > namesMax {
		return nil, bad
	}
	return csr, nil
}

func serial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
}

// teamOf is the team of a certificate, or of the authority that signed it.
func teamOf(cert *x509.Certificate) string { return strings.Join(cert.Issuer.Organization, " ") }

func samePublic(a, b crypto.PublicKey) bool {
	key, ok := a.(*ecdsa.PublicKey)
	return ok && key.Equal(b)
}

func certPEM(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	der, err := x509.MarshalPKCS8PrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}), err
}

// store writes a file that only this user can read, into a folder that only this user can open.
func store(dir, name string, text []byte) error {
	err := os.MkdirAll(dir, 0o700)
	if err == nil {
		err = os.Chmod(dir, 0o700)
	}
	if err == nil {
		err = file.Replace(filepath.Join(dir, name), text, 0o600)
	}
	if err != nil {
		return Explain(fmt.Errorf("write %s: %w", name, err), "", time.Time{})
	}
	return nil
}

// load reads a file that store wrote. It refuses one that others can read: its secret may be known.
func load(dir, name string) ([]byte, error) {
	path := filepath.Join(dir, name)
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("other users can read %s, so its key may be known; make it readable for you alone (chmod 600), or join again", path)
	}
	if info.Size() > fileMax {
		return nil, fmt.Errorf("%s has %s; it should have 1 KiB", path, file.Size(info.Size()))
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return text, nil
}

func loadCertificate(dir, name string) (*x509.Certificate, error) {
	text, err := load(dir, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s: this host belongs to no cluster; join one first: %w", dir, name, err)
	}
	if err != nil {
		return nil, err
	}
	return parseCertificate(text, name)
}

func parseCertificate(text []byte, name string) (*x509.Certificate, error) {
	block, rest := pem.Decode(text)
	if block == nil || block.Type != "CERTIFICATE" || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%s is not a certificate; restore it from a backup, or join again", name)
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s is not a certificate; restore it from a backup, or join again", name)
	}
	return cert, nil
}

func loadKey(dir, name string) (*ecdsa.PrivateKey, error) {
	text, err := load(dir, name)
	if err != nil {
		return nil, err
	}
	if block, _ := pem.Decode(text); block != nil {
		if key, err := x509.ParsePKCS8PrivateKey(block.Bytes); err == nil {
			if key, ok := key.(*ecdsa.PrivateKey); ok {
				return key, nil
			}
		}
	}
	return nil, fmt.Errorf("%s is not a key; restore it from a backup, or join again", filepath.Join(dir, name))
}
