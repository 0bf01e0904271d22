package node

import (
	"errors"
	"fmt"

	"github.com/fairlead-dev/fairlead/cluster"

	"github.com/nats-io/nats-server/v2/server"
)

// A server checks what a client publishes, but not the subject that it names for the answer: an answer of JetStream
// to a plain host would go into the journal's stream, if that host named its subject. So each plain host has an
// account of its own, and an answer never leaves it. The accounts import what the permissions allow.

// export makes the account of the engine hosts offer what plain hosts may use. Only this package makes accounts.
func export(engine *server.Account) error {
	hears, says := cluster.Member{Name: "*"}.Subjects("*")
	var errs []error
	for _, subject := range says {
		errs = append(errs, engine.AddServiceExport(subject, nil))
	}
	for _, subject := range hears {
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
	hears, says := m.Subjects("*") // the permissions know the incarnation
	var errs []error
	for _, subject := range says {
		errs = append(errs, own.AddServiceImport(engine, subject, subject))
	}
	for _, subject := range hears {
		errs = append(errs, own.AddStreamImport(engine, subject, ""))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("make the account of host %s: %w", m.Name, err)
	}
	return own, nil
}
