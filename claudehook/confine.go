package claudehook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/claudehook/confine"
	"github.com/fairlead-dev/fairlead/dispatchfolder"
	"github.com/fairlead-dev/fairlead/policy"
	"github.com/fairlead-dev/fairlead/sandbox"
)

// MAIN's shell commands run in the kernel's sandbox: the answer to PreToolUse replaces the command by one that
// starts package confine with the original text.

// confinable reports whether the program will run a call of MAIN in the sandbox: it replaces commands (only
// Claude Code is known to), this kernel has what is needed, and no other hook may replace the command or has
// replaced one before.
func (v *visit) confinable() bool {
	if v.Tool != "Bash" || len(v.Exe) == 0 || v.folder.Unconfined() {
		return false
	}
	if _, why := sandbox.Supported(); why != "" {
		return false
	}
	return len(v.OtherHooks(v.Dir)) == 0
}

// whyPlain explains a denial of a shell command that the sandbox would have allowed.
func whyPlain(v *visit) string {
	if others := v.OtherHooks(v.Dir); len(others) > 0 {
		return fmt.Sprintf(" Claude Code may run another command than the one that is judged, because of %s; therefore MAIN gives only plain commands. If that hook never replaces a command, the user can name it in fairlead.yaml, in dispatch.hooks.", others[0])
	}
	if v.folder.Unconfined() {
		return " In this dispatch another hook has replaced a command of MAIN, so its commands do not run in the sandbox."
	}
	return ""
}

// confine allows a judged command of MAIN, in the sandbox. The program asks its own permission rules about the
// new command, so those of the user are judged here, about the original.
func (v *visit) confine(verdict policy.Verdict) (Answer, error) {
	var in struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal(v.Input, &in); err != nil {
		return Answer{}, fmt.Errorf("read the command: %w", err)
	}
	updated, err := replaceMember(v.Input, "command", v.confined(in.Command, verdict))
	if err != nil {
		return Answer{}, fmt.Errorf("run the command in the sandbox: %w", err)
	}
	out := &specific{Event: PreToolUse, Updated: updated}
	rules, err := v.userRules()
	if err != nil {
		return Answer{}, err
	}
	call := v.call()
	where := dispatchfolder.Where(v.session, v.folder, "")
	switch {
	case policy.Covers(rules.deny, call, where, dispatchfolder.Disk{}):
		return deny("The user's own permission rules deny this command."), nil
	case policy.Covers(rules.ask, call, where, dispatchfolder.Disk{}):
		out.Decision, out.Reason = "ask", "The user's own permission rules ask about this command. Fairlead runs it in a sandbox in which it can write nothing: "+cut(in.Command, 900)
	case verdict.Gathers && !verdict.Network:
		out.Decision, out.Reason = "allow", "Fairlead runs it in a sandbox in which it can write nothing."
	case v.Mode == "bypassPermissions", rules.allows(call, where):
		out.Decision, out.Reason = "allow", "The user's own permissions allow it. Fairlead runs it in a sandbox in which it can write nothing."
	default:
		out.Decision, out.Reason = "ask", "Fairlead runs it in a sandbox in which it can write nothing, but cannot tell all that it does: "+cut(in.Command, 900)
	}
	return say(said{Specific: out}), nil
}

// Words of the command that replaces another one. The program's own shell runs it; afterwards that shell is in
// the folder where the original command ended.
const (
	confineHead = "{ fairlead_dir=$("
	confineTail = ` 3>&1 1>&4 4>&-); fairlead_code=$?; } 4>&1; [ -z "$fairlead_dir" ] || cd -- "$fairlead_dir"; (exit $fairlead_code)`
)

// confined returns the command that runs another one in the sandbox.
func (v *visit) confined(command string, verdict policy.Verdict) string {
	var words []string
	programs := slices.Clone(verdict.Programs)
	for _, name := range policy.GatheringPrograms() {
		if strings.Contains(command, name) { // the fewer, the faster it starts
			programs = append(programs, name)
		}
	}
	args := confine.Command{
		Programs: append(programs, policy.LoadingPrograms()...), Network: verdict.Network, Not: cmp.Or(v.project(v.Dir), "/"),
		Stays: verdict.Gathers && stays(command), Text: command,
	}.Args()
	for _, w := range slices.Concat(v.Exe, args[:len(args)-2]) {
		words = append(words, quote(w))
	}
	words = append(words, "--", quote(command))
	return confineHead + strings.Join(words, " ") + confineTail
}

// stays reports whether a command ends in the folder in which it begins: it is made of plain words, none of which can
// change the folder.
func stays(command string) bool {
	if strings.ContainsFunc(command, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune(" |_./=:,@%+-", r)
	}) {
		return false
	}
	return !slices.ContainsFunc(strings.Fields(command), func(word string) bool {
		return slices.Contains([]string{"cd", "pushd", "popd", "eval", "source", ".", "exec", "exit", "command", "builtin"}, word)
	})
}

// unconfined returns the original of a command that confined returned; ok is false for any other text.
func (v *visit) unconfined(text string) (command string, ok bool) {
	_, rest, found := strings.Cut(text, " -- '")
	rest, tail := strings.CutSuffix(rest, "'"+confineTail)
	if !found || !tail || !strings.HasPrefix(text, confineHead) {
		return "", false
	}
	command = strings.ReplaceAll(rest, `'\''`, "'")
	call := v.call()
	raw, err := replaceMember(call.Input, "command", command)
	if err != nil {
		return "", false
	}
	call.Input, call.Confined = raw, true
	return command, v.confined(command, dispatchfolder.Judge(v.session, v.folder, "", call)) == text
}

// restored gives an event that is reported after a command the original command, if it ran in the sandbox.
func (v *visit) restored() bool {
	var in struct {
		Command string `json:"command"`
	}
	if v.Tool != "Bash" || json.Unmarshal(v.Input, &in) != nil {
		return false
	}
	command, ok := v.unconfined(in.Command)
	if !ok {
		return false
	}
	if raw, err := replaceMember(v.Input, "command", command); err == nil {
		v.Input = raw
		return true
	}
	return false
}

// userRules are the permission rules of Claude Code's settings files about shell commands.
type userRules struct{ allow, ask, deny []policy.Pattern }

func (r userRules) allows(call policy.Call, where policy.Where) bool {
	said, _, _ := policy.Book{Allow: r.allow}.Answer(call, nil, where, dispatchfolder.Disk{})
	return len(r.allow) > 0 && said == "allow"
}

// userRules reads the settings files of the machine, the user and the project. A rule that cannot be read is an
// error, because it may be one that denies.
func (v *visit) userRules() (rules userRules, err error) {
	for _, path := range v.settingsFiles(v.Dir) {
		text, _, err := readSmall(path)
		if os.IsNotExist(err) {
			continue
		}
		var is struct {
			Permissions struct {
				Allow, Ask, Deny []string
			} `json:"permissions"`
		}
		if err == nil {
			err = json.Unmarshal(text[bom(text):], &is)
		}
		if err != nil {
			return rules, fmt.Errorf("read the permission rules in %s: %w", path, err)
		}
		for _, list := range []struct {
			from []string
			to   *[]policy.Pattern
			safe bool // leaving one out is safe
		}{{is.Permissions.Deny, &rules.deny, false}, {is.Permissions.Ask, &rules.ask, false}, {is.Permissions.Allow, &rules.allow, true}} {
			for _, text := range list.from {
				if text != "Bash" && !strings.HasPrefix(text, "Bash(") {
					continue
				}
				p, err := policy.ParsePattern(text)
				if err != nil && !list.safe {
					return rules, fmt.Errorf("read the permission rules in %s: a rule %w", path, err)
				}
				if err == nil {
					*list.to = append(*list.to, p)
				}
			}
		}
	}
	return rules, nil
}
