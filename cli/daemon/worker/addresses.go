package worker

import (
	"log/slog"
	"slices"
	"sync"

	"github.com/fairlead-dev/fairlead/core/host/cluster"
)

// addresses are where the leader may be: at first those of the invitation, then also those of all engine hosts.
type addresses struct {
	log *slog.Logger
	dir string // of the repository, where a Config is kept; empty: another package keeps the addresses

	mu    sync.Mutex
	conf  Config
	begin int // of the next try: a leader that takes connections and answers nothing is not tried first again
}

// now are the addresses at present. A person may give others at any time: `fairlead host leader`.
func (a *addresses) now() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.read().Addresses
}

func (a *addresses) read() Config {
	if a.dir != "" {
		if is, err := LoadConfig(a.dir); err == nil {
			a.conf = is
		}
	}
	return a.conf
}

// next are the addresses for the next try.
func (a *addresses) next() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	list := a.read().Addresses
	at := a.begin % max(1, len(list)) // Dial says what is wrong if there is none
	a.begin++
	return slices.Concat(list[at:], list[:at])
}

// learn takes in the engine hosts of the team. Those of the invitation stay: this host reached the leader there. They are the first
// ones, so at the limit the last one that is no engine host's goes.
func (a *addresses) learn(engines []cluster.EngineHost) {
	a.mu.Lock()
	defer a.mu.Unlock()
	conf := a.read()
	conf.Addresses = slices.Clone(conf.Addresses)
	for _, e := range engines {
		if e.Name == conf.Name || len(engines) == 1 || slices.Contains(conf.Addresses, e.Address) {
			continue
		}
		if len(conf.Addresses) >= addressesMax {
			old := len(conf.Addresses) - 1
			for old >= 0 && slices.ContainsFunc(engines, func(e cluster.EngineHost) bool { return e.Address == conf.Addresses[old] }) {
				old--
			}
			if old < 0 {
				break
			}
			conf.Addresses = slices.Delete(conf.Addresses, old, old+1)
		}
		conf.Addresses = append(conf.Addresses, e.Address)
	}
	if slices.Equal(conf.Addresses, a.conf.Addresses) || conf.Wrong() != "" {
		return
	}
	a.conf = conf
	if a.dir == "" {
		return
	}
	if err := SaveConfig(a.dir, conf); err != nil {
		a.log.Warn("the addresses of the engine hosts could not be stored; the leader sends them again after the next start", "error", err)
	}
}
