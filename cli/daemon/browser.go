package daemon

import (
	"os"
	"os/exec"
	"runtime"
)

// SignInURL returns the address that signs a browser in. The code comes after the #, and browsers send that
// part to no server; the page exchanges it and removes it from the address bar.
func SignInURL(page, code string) string { return page + "#code=" + code }

// OpenSignedIn shows a place of a daemon's page in a browser, such as now, and signs the browser in. Other users can read the arguments of
// the program that opens the browser, so the code in them is valid once and for seconds.
func OpenSignedIn(d *Daemon, place string) {
	if browserProgram() != "" {
		code, _ := d.Logins.NewCode()
		OpenBrowser(SignInURL(d.Url, code) + "/" + place)
	}
}

// OpenBrowser shows a page in a browser, if there is one. The address is printed in any case.
func OpenBrowser(url string) {
	name := browserProgram()
	if name == "" {
		return
	}
	cmd := exec.Command(name, url) //nolint:gosec // Fairlead's own address
	if err := cmd.Start(); err != nil {
		return
	}
	go func() { _ = cmd.Wait() }() // whether the browser works does not matter here
}

// browserProgram returns the program that opens a browser; empty if there is no display.
func browserProgram() string {
	switch {
	case runtime.GOOS == "darwin":
		return "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return ""
	}
	return "xdg-open"
}
