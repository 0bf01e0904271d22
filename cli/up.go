package cli

import (
	"log/slog"
	"time"

	"github.com/lmittmann/tint"
)

// Logger writes for people on a terminal and in key=value form elsewhere.
func (a *App) Logger(verbose bool) *slog.Logger {
	level := slog.LevelWarn
	if verbose {
		level = slog.LevelDebug
	}
	if Tty(a.Err) {
		return slog.New(tint.NewTextHandler(a.Err, &tint.Options{Level: level, TimeFormat: time.TimeOnly, NoColor: Colourless()}))
	}
	return slog.New(slog.NewTextHandler(a.Err, &slog.HandlerOptions{Level: level}))
}
