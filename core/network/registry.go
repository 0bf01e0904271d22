package network

// Registry is one registry of packages.
type Registry struct {
	Name  string
	Hosts []string
}

// registries are the hosts of the word packages: those from which a package manager fetches with its own settings.
//
// GitHub, GitLab, Bitbucket, container registries and model hubs are not among them: everybody can upload there with an account that
// a text in the repository can bring along. Who needs one names it.
var registries = [...]Registry{
	{"npm", []string{"registry.npmjs.org"}},                                                                                   // docs.npmjs.com/cli, config registry
	{"Yarn", []string{"registry.yarnpkg.com"}},                                                                                // yarnpkg.com, npmRegistryServer
	{"JSR", []string{"npm.jsr.io", "jsr.io"}},                                                                                 // jsr.io/docs/npm-compatibility
	{"PyPI", []string{"pypi.org", "files.pythonhosted.org"}},                                                                  // docs.pypi.org/api
	{"conda", []string{"conda.anaconda.org", "repo.anaconda.com"}},                                                            // docs.conda.io, channels
	{"crates.io", []string{"index.crates.io", "static.crates.io", "crates.io"}},                                               // doc.rust-lang.org/cargo, registry index
	{"Rust", []string{"static.rust-lang.org"}},                                                                                // rust-lang.github.io/rustup
	{"Go", []string{"proxy.golang.org", "sum.golang.org"}},                                                                    // go.dev/ref/mod, GOPROXY and GOSUMDB
	{"Maven Central", []string{"repo.maven.apache.org", "repo1.maven.org"}},                                                   // central.sonatype.org
	{"Gradle", []string{"plugins.gradle.org", "plugins-artifacts.gradle.org", "services.gradle.org", "downloads.gradle.org"}}, // docs.gradle.org
	{"Google Maven", []string{"dl.google.com", "maven.google.com"}},                                                           // developer.android.com/build
	{"RubyGems", []string{"rubygems.org", "index.rubygems.org"}},                                                              // guides.rubygems.org
	{"NuGet", []string{"api.nuget.org", "globalcdn.nuget.org"}},                                                               // learn.microsoft.com/nuget
	{"Packagist", []string{"repo.packagist.org", "packagist.org"}},                                                            // packagist.org/apidoc
	{"Hex", []string{"hex.pm", "repo.hex.pm", "builds.hex.pm"}},                                                               // hex.pm/docs
	{"CPAN", []string{"www.cpan.org", "cpan.metacpan.org", "fastapi.metacpan.org"}},                                           // metacpan.org/about
	{"CRAN", []string{"cran.r-project.org", "cloud.r-project.org"}},                                                           // cran.r-project.org/mirrors.html
	{"pub", []string{"pub.dev"}},                                                                                              // dart.dev/tools/pub
	{"Hackage", []string{"hackage.haskell.org"}},                                                                              // hackage.haskell.org
	{"CocoaPods", []string{"cdn.cocoapods.org"}},                                                                              // guides.cocoapods.org
	{"Debian", []string{"deb.debian.org", "security.debian.org"}},                                                             // www.debian.org/mirror
	{"Ubuntu", []string{"archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com"}},                                     // documentation.ubuntu.com
	{"Alpine", []string{"dl-cdn.alpinelinux.org"}},                                                                            // wiki.alpinelinux.org/wiki/Repositories
}

// Registries are the registries of the word packages.
func Registries() []Registry { return registries[:] }
