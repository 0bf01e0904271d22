package node

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fairlead-dev/fairlead/cluster"

	"github.com/nats-io/nats-server/v2/server"
)

// A server checks what a client publishes, but not the subject that it names for the answer: an answer of JetStream
// to a plain host would go into the journal's stream, if that host named its subject. So each plain host has an
// account of its own, and an answer never leaves it. The accounts import what the permissions allow.

// export makes the account of the engine hosts offer what plain hosts may use.
func export(engine *server.Account) error {
	all := cluster.Member{Name: "*", Role: cluster.Host}.Permissions()
	var errs []error
	for _, subject := range all.Publish {
		errs = append(errs, engine.AddServiceExport(subject, nil)) // only this package makes accounts
	}
	for _, subject := range placed(all) {
		errs = append(errs, engine.AddStreamExport(subject, nil))
	}
	return errors.Join(errs...)
}

// accountOf is the account of a member's connections.
func accountOf(s *server.Server, m cluster.Member) (*server.Account, error) {
	engine := s.GlobalAccount()
	if m.Role == cluster.Engine {
		return engine, nil
	}
	own, isNew := s.LookupOrRegisterAccount("host-" + m.Name)
	if !isNew {
		return own, nil
	}
	p := m.Permissions()
	var errs []error
	for _, subject := range p.Publish {
		errs = append(errs, own.AddServiceImport(engine, subject, subject))
	}
	for _, subject := range placed(p) {
		errs = append(errs, own.AddStreamImport(engine, subject, ""))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make the account of host %s: %w", m.Name, err)
	}
	return own, nil
}

// placed are the subjects on which a member hears engine hosts. Inboxes stay within its account.
func placed(p cluster.Permissions) (subjects []string) {
	for _, subject := range p.Subscribe {
		if !strings.HasPrefix(subject, cluster.InboxPrefix("")) {
			subjects = append(subjects, subject)
		}
	}
	return subjects
}
