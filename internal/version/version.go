// Package version names the version of this program: the one that was given to the build, or else the tag or the commit in
// its build information.
//
// The one promise: the version is the one that the build recorded.
package version

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// Line is the version for people: with that of Go and the platform.
func Line() string {
	return fmt.Sprintf("fairlead %s (%s, %s/%s)", String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// given is what -ldflags "-X …/internal/version.given=1.4.0" says: for a build without a repository, and for tests that
// need programs of two versions.
var given string

// String is the version that was given to the build, or the one in its information: a tag, a commit, or devel.
func String() string {
	if given != "" {
		return given
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel-" + s.Value[:12]
		}
	}
	return "devel"
}
