package daemon

import (
	"os"
	"os/exec"
	"runtime"
)

// OpenBrowser shows a page in a browser, if there is one. The address is printed in any case.
func OpenBrowser(url string) {
	name, words := "xdg-open", []string{url}
	if runtime.GOOS == "darwin" {
		name = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	cmd := exec.Command(name, words...) //nolint:gosec // Fairlead's own address
	if err := cmd.Start(); err != nil {
		return
	}
	go func() { _ = cmd.Wait() }() // whether the browser works does not matter here
}
