package daemon

import (
	"os"
	"os/exec"
	"runtime"
)

// OpenBrowser shows a page to who sits here. Where nobody does, the address was printed.
func OpenBrowser(url string) {
	name, words := "xdg-open", []string{url}
	if runtime.GOOS == "darwin" {
		name = "open"
	} else if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return
	}
	cmd := exec.Command(name, words...) //nolint:gosec // our own address
	if err := cmd.Start(); err != nil {
		return
	}
	go func() { _ = cmd.Wait() }() // how the browser fared is its own affair
}
