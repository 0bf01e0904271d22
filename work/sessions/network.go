package sessions

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/config"
	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/outlet"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
	"github.com/fairlead-dev/fairlead/process/sandbox"
	"github.com/fairlead-dev/fairlead/process/spawn"
	"github.com/fairlead-dev/fairlead/work/sessionhost"
)

// ProxyFolder is the folder of the proxy below a state folder, which is .fairlead or that of a host.
func ProxyFolder(state string) string { return filepath.Join(state, "proxy") }

// inNetwork gives a launch in a view what it reaches: a network of its own, in which a proxy answers. The keys that the proxy can send
// instead of the program are taken out of the program's environment.
func inNetwork(launch spawn.Launch, box sessionhost.Confinement, folder string) spawn.Launch {
	env := map[string]string{}
	for _, kv := range launch.Env {
		name, value, _ := strings.Cut(kv, "=")
		env[name] = value
	}
	provider, known := network.ProviderOf(box.Driver, box.Command, slices.Collect(maps.Keys(env)))
	base := env[provider.BaseVariable] // without one, no variable has this name
	rules := box.Network.Rules(provider.Name, base)
	rules.Local = localPorts(box.Local, rules.Hosts)
	to := &spawn.Network{Folder: folder, Agent: box.Agent, Rules: rules, Upstream: outlet.UpstreamOf(launch.Env)}
	if known {
		launch.Argv, to.Keys = takeKey(launch.Argv, len(box.Command), env, provider, base)
	}
	launch.Env = launch.Env[:0:0]
	for _, name := range slices.Sorted(maps.Keys(env)) {
		launch.Env = append(launch.Env, name+"="+env[name])
	}
	launch.Env = outlet.Environment(launch.Env)
	view := *launch.View
	view.Network = sandbox.InsideOf(rules)
	launch.View, launch.Network = &view, to
	return launch
}

// takeKey gives the key to the proxy, and leads the program to it. A program that cannot be led there keeps its key.
func takeKey(argv []string, command int, env map[string]string, p network.Provider, base string) ([]string, []wire.Key) {
	if len(p.Keys) == 0 || !p.Replaceable() {
		return argv, nil
	}
	key, origin, known := env[p.Keys[0]], "", true
	if base != "" {
		origin, known = p.Base(base)
	}
	if !known {
		return argv, nil
	}
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r > '~' }) { // no header carries it
		return argv, nil
	}
	env[p.Keys[0]] = p.Placeholder
	for _, other := range p.Keys[1:] { // they lead to the same service
		delete(env, other)
	}
	variable, value, arguments := p.Local(outlet.Address)
	if variable != "" {
		env[variable] = value
	}
	at := min(max(command, 1), len(argv)) // after the words of the agent's command
	return slices.Concat(argv[:at], arguments, argv[at:]), []wire.Key{{Provider: p.Name, Value: key, Base: origin}}
}

// localPorts are the ports of this machine that a session reaches at the same numbers: those of `local`, and those of hosts on loopback
// that a person named, which programs do not ask the proxy for.
func localPorts(local []int, hosts []network.Host) []int {
	ports := slices.Clone(local)
	for _, h := range hosts {
		loopback := h.Name == "localhost" || h.Name == "::1" || strings.HasPrefix(h.Name, "127.")
		if h.Named && loopback && h.Port != 0 && !network.Reserved(h.Port) && !slices.Contains(ports, h.Port) {
			ports = append(ports, h.Port)
		}
	}
	return ports
}

// networkHoles are the openings in an agent's wall that its `network` and `local` make, and the key that its program holds.
func networkHoles(conf *config.Agent) (holes []string) {
	if conf.Network.Word == network.All {
		holes = append(holes, "it can reach every public host, and send there what it reads")
	}
	for _, port := range conf.Sandbox.Local {
		holes = append(holes, fmt.Sprintf("it can connect to port %d of this machine, and what listens there acts outside of its wall", port))
	}
	p, known := network.ProviderOf(conf.Driver, conf.Command, conf.Env.Names())
	if known && len(p.Keys) > 0 && slices.Contains(conf.Env.Names(), p.Keys[0]) && !p.Replaceable() {
		holes = append(holes, fmt.Sprintf("its program holds the key in %s, because it cannot be led to the proxy that would send it", p.Keys[0]))
	}
	return holes
}

// networkInWords says what an agent reaches.
func networkInWords(conf *config.Agent) string {
	switch {
	case !sandbox.Abilities().Network:
		return "The network is open"
	case conf.Network.Word == network.None:
		return "It reaches nothing in the network"
	case conf.Network.Word == network.All:
		return "In the network it reaches every public host, through a proxy"
	}
	return "In the network it reaches, through a proxy, only " + strings.Join(conf.Network.Words(), ", ")
}
