package cli

import (
	"os"

	"golang.org/x/term"
)

// The size of a terminal that does not report its own.
const (
	ScreenWidth  = 80
	screenHeight = 24
)

// Size returns the size of the terminal.
func (a *App) Size() (width, height int) {
	if file, ok := a.Out.(*os.File); ok {
		if w, h, err := term.GetSize(int(file.Fd())); err == nil && w > 20 && h > 8 { //nolint:gosec // a descriptor fits an int
			return w, h
		}
	}
	return ScreenWidth, screenHeight
}

// OrElse is s, or otherwise if s is empty.
func OrElse(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}
