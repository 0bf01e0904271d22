package doctor

import (
	"fmt"
	"os"

	"github.com/fairlead-dev/fairlead/claudehook"
	"github.com/fairlead-dev/fairlead/cli"
)

const (
	hooksAbout = "Claude Code hooks"
	hooksShown = 10 // the others are counted
)

// lookAtHooks names the hooks that Claude Code calls for shell commands beside Fairlead's, if these are installed.
func lookAtHooks(dir string) (findings []Finding) {
	home, _ := os.UserHomeDir() // none: hooks of the user are not found
	others, installed := claudehook.Hook{Env: os.Getenv, Home: home}.Beside(dir)
	if !installed {
		return nil
	}
	for _, other := range others[:min(len(others), hooksShown)] {
		findings = append(findings, Finding{
			OK: true, About: hooksAbout, What: "beside Fairlead's, " + cli.Plain(other.String()) + " is called for shell commands and could replace them, so MAIN gives only plain commands",
			Do: "if it never replaces a command, name it in fairlead.yaml, in dispatch.hooks",
		})
	}
	if more := len(others) - hooksShown; more > 0 {
		findings = append(findings, Finding{OK: true, About: hooksAbout, What: fmt.Sprintf("and %d more", more)})
	}
	if len(others) == 0 {
		findings = append(findings, Finding{OK: true, About: hooksAbout, What: "no other hook that fairlead.yaml does not name in dispatch.hooks is called for shell commands"})
	}
	return findings
}
