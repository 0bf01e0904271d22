package outlet

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/core/network"
	"github.com/fairlead-dev/fairlead/process/proxy/wire"
)

// Address is where a program in a view reaches the proxy.
var Address = "http://127.0.0.1:" + strconv.Itoa(network.ProxyPort)

const direct = "localhost,127.0.0.1,::1"

// variables are for programs that know proxies: curl's library, Go, Python, Rust and Ruby read one of the two spellings, and Node from
// version 24 on reads them with NODE_USE_ENV_PROXY. Other programs look names up, and the proxy answers that.
var variables = []string{
	"HTTP_PROXY=" + Address, "HTTPS_PROXY=" + Address, "ALL_PROXY=" + Address,
	"http_proxy=" + Address, "https_proxy=" + Address, "all_proxy=" + Address,
	"NO_PROXY=" + direct, "no_proxy=" + direct, "NODE_USE_ENV_PROXY=1",
}

// Environment leads the programs of a view to the proxy.
func Environment(env []string) []string {
	env = slices.DeleteFunc(slices.Clone(env), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return slices.ContainsFunc(variables, func(ours string) bool { return strings.HasPrefix(ours, name+"=") })
	})
	return append(env, variables...)
}

const authoritiesBytesMax = 512 << 10 // of one file: the bundle of Debian has 220 KB

// UpstreamOf is how the proxy reaches the network: as a program with this environment would without it.
func UpstreamOf(env []string) (up wire.Upstream) {
	value := func(names ...string) string {
		for _, name := range names {
			for _, kv := range slices.Backward(env) {
				if value, is := strings.CutPrefix(kv, name+"="); is && value != "" {
					return value
				}
			}
		}
		return ""
	}
	up.Proxy = value("https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY")
	up.NoProxy = value("no_proxy", "NO_PROXY")
	for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS"} {
		f, err := os.Open(value(name))
		if err != nil {
			continue // it names none, or one that the program could not read either
		}
		text, err := io.ReadAll(io.LimitReader(f, authoritiesBytesMax+1))
		f.Close()
		if err == nil && len(text) <= authoritiesBytesMax {
			up.Authorities = append(append(up.Authorities, text...), '\n')
		}
	}
	return up
}
