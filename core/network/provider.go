package network

import (
	"path"
	"slices"
	"strings"
)

// Provider is a model service in one way of sending its key.
type Provider struct {
	// Name is its name in rules, and in the address that a program gets in place of Origin.
	Name string
	// Origin is the scheme and host of its API, without a slash at the end.
	Origin string
	// Paths are the calls that a program may make with the key: of models alone, so that the key opens no store of files.
	Paths []string
	// Hosts are what a program needs: the API, and where a program that has signed in gets its next token. Telemetry is not among them,
	// nor are pages that only a browser opens.
	Hosts []Host
	// Keys are the variables that hold the key. Those of ProviderOf begin with the one that the program uses.
	Keys []string
	// Header is the header that carries the key, and Scheme the word before it, such as Bearer.
	Header, Scheme string
	// Placeholder has the shape of a key and is none.
	Placeholder string

	// BaseVariable is the variable with which the program is led to another origin; empty: none does. BasePath is what follows the
	// origin in it. ProviderOf fills in these fields, because they depend on the program.
	BaseVariable, BasePath string

	frame     string   // of the value of BaseVariable, around {base}; empty: it is the address alone
	arguments []string // that lead the program to another origin, with {base}; they take the variable's place
}

const bearer = "Bearer"

// providers are the rows, with their sources. The headers are those of the API references; the variables and base URLs are from the
// documents of the programs.
var providers = [...]Provider{
	{ // platform.claude.com/docs, API; code.claude.com/docs: env-vars, network-config, authentication
		Name: "anthropic", Origin: "https://api.anthropic.com", Paths: []string{"/v1/messages", "/v1/models"},
		Hosts: anthropicHosts, Keys: []string{"ANTHROPIC_API_KEY"}, Header: "x-api-key", Placeholder: "sk-ant-api03-placeholder",
	},
	{ // the same; a token that `claude setup-token` has made, or that of a gateway
		Name: "anthropic-token", Origin: "https://api.anthropic.com", Paths: []string{"/v1/messages", "/v1/models"},
		Hosts: anthropicHosts, Keys: []string{"ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "sk-ant-oat01-placeholder",
	},
	{ // platform.openai.com/docs/api-reference; openai/codex: codex-rs/model-provider-info and login
		Name: "openai", Origin: "https://api.openai.com",
		Paths: []string{"/v1/responses", "/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/models"},
		Hosts: []Host{{Name: "api.openai.com"}, {Name: "chatgpt.com"}, {Name: "auth.openai.com"}},
		Keys:  []string{"CODEX_API_KEY", "OPENAI_API_KEY"}, Header: "Authorization", Scheme: bearer, Placeholder: "sk-proj-placeholder",
	},
	{ // ai.google.dev/api; google-gemini/gemini-cli: packages/core/src/core/contentGenerator.ts and code_assist
		Name: "google", Origin: "https://generativelanguage.googleapis.com",
		Paths: []string{"/v1beta/models", "/v1beta/openai/chat/completions", "/v1/models", "/v1alpha/models"},
		Hosts: []Host{
			{Name: "generativelanguage.googleapis.com"}, {Name: "cloudcode-pa.googleapis.com"}, {Name: "oauth2.googleapis.com"},
		},
		Keys:   []string{"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY"},
		Header: "x-goog-api-key", Placeholder: "AIzaSyPlaceholderPlaceholderPlaceholder",
	},
	{ // QwenLM/qwen-code: docs/users/configuration/auth.md; alibabacloud.com/help/model-studio
		Name: "qwen", Origin: "https://dashscope.aliyuncs.com",
		Paths: []string{
			"/compatible-mode/v1/chat/completions", "/compatible-mode/v1/responses", "/compatible-mode/v1/models",
		},
		Hosts: []Host{
			{Name: "dashscope.aliyuncs.com"},
			{Name: "dashscope-intl.aliyuncs.com"},
			{Name: "coding.dashscope.aliyuncs.com"},
			{Name: "coding-intl.dashscope.aliyuncs.com"},
			{Name: "portal.qwen.ai"},
			{Name: "chat.qwen.ai"},
		},
		Keys: []string{"DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "sk-placeholder",
	},
	{ // openrouter.ai/docs/api-reference
		Name: "openrouter", Origin: "https://openrouter.ai",
		Paths: []string{"/api/v1/chat/completions", "/api/v1/responses", "/api/v1/messages", "/api/v1/completions", "/api/v1/models"},
		Hosts: []Host{{Name: "openrouter.ai"}}, Keys: []string{"OPENROUTER_API_KEY"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "sk-or-v1-placeholder",
	},
	{ // opencode.ai/docs/zen
		Name: "opencode", Origin: "https://opencode.ai",
		Paths: []string{
			"/zen/v1/chat/completions", "/zen/v1/responses", "/zen/v1/messages", "/zen/v1/models", "/zen/go/v1/chat/completions",
			"/zen/go/v1/messages",
		},
		Hosts: []Host{{Name: "opencode.ai"}}, Keys: []string{"OPENCODE_API_KEY"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "sk-placeholder",
	},
	{ // api-docs.deepseek.com
		Name: "deepseek", Origin: "https://api.deepseek.com",
		Paths: []string{"/chat/completions", "/v1/chat/completions", "/anthropic/v1/messages", "/models", "/v1/models"},
		Hosts: []Host{{Name: "api.deepseek.com"}}, Keys: []string{"DEEPSEEK_API_KEY"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "sk-placeholder",
	},
	{ // docs.mistral.ai/api
		Name: "mistral", Origin: "https://api.mistral.ai", Paths: []string{"/v1/chat/completions", "/v1/fim/completions", "/v1/models"},
		Hosts: []Host{{Name: "api.mistral.ai"}}, Keys: []string{"MISTRAL_API_KEY"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "placeholder",
	},
	{ // console.groq.com/docs/api-reference
		Name: "groq", Origin: "https://api.groq.com",
		Paths: []string{"/openai/v1/chat/completions", "/openai/v1/responses", "/openai/v1/models"},
		Hosts: []Host{{Name: "api.groq.com"}}, Keys: []string{"GROQ_API_KEY"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "gsk_placeholder",
	},
	{ // docs.x.ai/docs/api-reference
		Name: "xai", Origin: "https://api.x.ai", Paths: []string{"/v1/chat/completions", "/v1/responses", "/v1/models"},
		Hosts: []Host{{Name: "api.x.ai"}}, Keys: []string{"XAI_API_KEY"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "xai-placeholder",
	},
	{ // platform.moonshot.ai/docs
		Name: "moonshot", Origin: "https://api.moonshot.ai", Paths: []string{"/v1/chat/completions", "/v1/models", "/anthropic/v1/messages"},
		Hosts: []Host{{Name: "api.moonshot.ai"}}, Keys: []string{"MOONSHOT_API_KEY"}, Header: "Authorization", Scheme: bearer,
		Placeholder: "sk-placeholder",
	},
}

// anthropicHosts: claude.ai and claude.com are opened by the browser alone; console.anthropic.com refreshes tokens of older versions.
var anthropicHosts = []Host{{Name: "api.anthropic.com"}, {Name: "platform.claude.com"}, {Name: "console.anthropic.com"}}

// Providers are all rows.
func Providers() []Provider { return slices.Clone(providers[:]) }

// ProviderNamed is the provider of a name.
func ProviderNamed(name string) (Provider, bool) {
	i := slices.IndexFunc(providers[:], func(p Provider) bool { return p.Name == name })
	if i < 0 {
		return Provider{}, false
	}
	return providers[i], true
}

// program is what is known of an agent program.
type program struct {
	names []string // of its file, or the driver
	// elsewhere are variables with which it uses a service of a cloud, whose hosts depend on the account.
	elsewhere []string
	// order are the variables of keys, in the order in which it looks at them; others come after these.
	order []string
	// signedIn is the provider that it uses without a key.
	signedIn string
	// bases say how it is led to another origin, by provider.
	bases []base
}

// base says how a program is led to another origin of a provider.
type base struct {
	providers []string
	variable  string
	path      string
	frame     string
	arguments []string
}

var programs = [...]program{
	{ // code.claude.com/docs: env-vars, authentication (precedence)
		names: []string{"claude", "claude-code", "claude-agent-acp", "claude-code-acp"}, signedIn: "anthropic",
		elsewhere: []string{"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE"},
		order:     []string{"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"},
		bases:     []base{{providers: []string{"anthropic", "anthropic-token"}, variable: "ANTHROPIC_BASE_URL"}},
	},
	{ // openai/codex: config.toml, openai_base_url; OPENAI_BASE_URL is ignored since 0.118 (issue 16719)
		names: []string{"codex"}, signedIn: "openai", order: []string{"CODEX_API_KEY", "OPENAI_API_KEY"},
		bases: []base{{providers: []string{"openai"}, path: "/v1", arguments: []string{"-c", `openai_base_url="{base}"`}}},
	},
	{names: []string{"codex-acp"}, signedIn: "openai", order: []string{"CODEX_API_KEY", "OPENAI_API_KEY"}},
	{ // google-gemini/gemini-cli: packages/core/src/core/contentGenerator.ts
		names: []string{"gemini", "gemini-cli"}, signedIn: "google", elsewhere: []string{"GOOGLE_GENAI_USE_VERTEXAI"}, order: []string{"GEMINI_API_KEY"},
		bases: []base{{providers: []string{"google"}, variable: "GOOGLE_GEMINI_BASE_URL"}},
	},
	{ // QwenLM/qwen-code: docs/users/configuration/auth.md; a model whose settings name a base URL keeps it
		names: []string{"qwen", "qwen-code"}, signedIn: "qwen",
		order: []string{"OPENAI_API_KEY", "DASHSCOPE_API_KEY", "BAILIAN_CODING_PLAN_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"},
		bases: []base{
			{providers: []string{"openai"}, variable: "OPENAI_BASE_URL", path: "/v1"},
			{providers: []string{"anthropic"}, variable: "ANTHROPIC_BASE_URL"},
		},
	},
	{ // opencode.ai/docs: config (OPENCODE_CONFIG_CONTENT), providers (options.baseURL)
		names: []string{"opencode", "opencode-ai"}, signedIn: "opencode",
		bases: []base{
			openCode("anthropic", "/v1"), openCode("openai", "/v1"), openCode("google", "/v1beta"), openCode("openrouter", "/api/v1"),
			openCode("opencode", "/zen/v1"), openCode("deepseek", ""), openCode("mistral", "/v1"), openCode("groq", "/openai/v1"),
			openCode("xai", "/v1"),
		},
	},
}

// openCode leads OpenCode to another origin of a provider, by settings in a variable.
func openCode(provider, path string) base {
	return base{
		providers: []string{provider}, variable: "OPENCODE_CONFIG_CONTENT", path: path,
		frame: `{"provider":{"` + provider + `":{"options":{"baseURL":"{base}"}}}}`,
	}
}

// wordsLooked is how many leading words of a command are searched for a program's name, as in npx -y opencode-ai acp.
const wordsLooked = 3

// ProviderOf is the provider that an agent is configured for: by its driver, its program, and the names of the variables in its env. An
// agent that uses a cloud's own service has none: a person names its host.
func ProviderOf(driver string, command, env []string) (Provider, bool) {
	of := programOf(command[:min(wordsLooked, len(command))])
	if of.names == nil { // a command can be another program with the same protocol
		of = programOf([]string{driver})
	}
	has := func(variable string) bool { return slices.Contains(env, variable) }
	if slices.ContainsFunc(of.elsewhere, has) {
		return Provider{}, false
	}
	p, known := of.provider(has)
	for _, b := range of.bases {
		if slices.Contains(b.providers, p.Name) && (b.frame == "" || !has(b.variable)) { // settings of a person's own stay
			p.BaseVariable, p.BasePath, p.frame, p.arguments = b.variable, b.path, b.frame, b.arguments
		}
	}
	return p, known
}

// programOf is the program that one of the words names; the zero value: none does.
func programOf(words []string) program {
	i := slices.IndexFunc(programs[:], func(p program) bool { return slices.ContainsFunc(words, p.isCalled) })
	if i < 0 {
		return program{}
	}
	return programs[i]
}

// isCalled reports whether a word of a command names the program, as opencode-ai@1.18 and /usr/bin/codex.js do.
func (of program) isCalled(word string) bool {
	base := path.Base(word)
	if at := strings.LastIndexByte(base, '@'); at > 0 {
		base = base[:at]
	}
	return slices.Contains(of.names, strings.TrimSuffix(base, ".js"))
}

// provider is the one whose key the program finds first, or that with which it has signed in. Its Keys begin with the variable that the
// program uses; the others lead to the same origin.
func (of program) provider(has func(variable string) bool) (Provider, bool) {
	order := of.order
	for _, p := range providers {
		order = append(order[:len(order):len(order)], p.Keys...)
	}
	i := slices.IndexFunc(order, has)
	if i < 0 {
		return ProviderNamed(of.signedIn)
	}
	used, keys := Provider{}, []string{order[i]}
	for _, p := range providers {
		if slices.Contains(p.Keys, order[i]) {
			used = p
		}
	}
	for _, p := range providers {
		if p.Origin == used.Origin {
			keys = append(keys, slices.DeleteFunc(slices.Clone(p.Keys), func(key string) bool { return key == order[i] })...)
		}
	}
	used.Keys = keys
	return used, true
}

// Replaceable reports whether the program can be led to another origin. Otherwise it keeps its key.
func (p Provider) Replaceable() bool { return p.BaseVariable != "" || len(p.arguments) > 0 }

// Local is what leads the program to an address of the proxy, such as http://127.0.0.1:61080: a variable, or arguments.
func (p Provider) Local(address string) (variable, value string, arguments []string) {
	at := address + "/" + p.Name + p.BasePath
	for _, argument := range p.arguments {
		arguments = append(arguments, strings.ReplaceAll(argument, "{base}", at))
	}
	if p.BaseVariable == "" {
		return "", "", arguments
	}
	if p.frame == "" {
		return p.BaseVariable, at, nil
	}
	return p.BaseVariable, strings.ReplaceAll(p.frame, "{base}", at), nil
}

// Base is what takes Origin's place where a person has set BaseVariable to an address. It is not known for an address that does not
// end as the provider's own does: then the program keeps its key and its address.
func (p Provider) Base(configured string) (origin string, known bool) {
	if _, err := BaseHost(configured); err != nil || p.frame != "" {
		return "", false
	}
	origin = strings.TrimSuffix(configured, "/")
	return strings.TrimSuffix(origin, p.BasePath), strings.HasSuffix(origin, p.BasePath)
}

// Allows reports whether a program may make a call with the key. The path is as it was sent, without the query.
func (p Provider) Allows(sent string) bool {
	lower := strings.ToLower(sent)
	for _, trick := range []string{"..", "//", `\`, "%2e", "%2f", "%5c", "%25", "%00"} {
		if strings.Contains(lower, trick) {
			return false
		}
	}
	return slices.ContainsFunc(p.Paths, func(start string) bool {
		rest, is := strings.CutPrefix(sent, start)
		return is && (rest == "" || rest[0] == '/' || rest[0] == ':')
	})
}
