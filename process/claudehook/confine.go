package claudehook

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fairlead-dev/fairlead/core/policy"
	"github.com/fairlead-dev/fairlead/files/dispatchfolder"
	"github.com/fairlead-dev/fairlead/process/claudehook/confine"
	"github.com/fairlead-dev/fairlead/process/sandbox"
)

// Shell commands run in views of the machine: the answer to PreToolUse replaces the command by one that starts package confine
// with the original text.

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

// confine allows a judged command in its view. The program asks its own permission rules about the
// new command, so those of the user are judged here, about the original.
func (v *visit) confine(verdict policy.Verdict, main bool) (Answer, error) {
	var in struct {
		Command string `json:"command"`
	}
	if err := json.Unmarshal(v.Input, &in); err != nil {
		return Answer{}, fmt.Errorf("read the command: %w", err)
	}
	updated, err := replaceMember(v.Input, "command", v.confined(in.Command, verdict, main, v.conversation()))
	if err != nil {
		return Answer{}, fmt.Errorf("run the command in the sandbox: %w", err)
	}
	out := &specific{Event: PreToolUse, Updated: updated}
	where := "Fairlead runs it in a view of the machine in which it can write nothing"
	if !main {
		where = "Fairlead runs it in a view of the machine in which it can write in the project alone, and there not in .git, and in .claude only in the conversation's folder"
	}
	rules, err := v.userRules()
	if err != nil {
		return Answer{}, err
	}
	call := v.call()
	at := dispatchfolder.Where(v.session, v.folder, "")
	switch {
	case policy.Covers(rules.deny, call, at, dispatchfolder.Disk{}):
		return deny("The user's own permission rules deny this command."), nil
	case policy.Covers(rules.ask, call, at, dispatchfolder.Disk{}):
		out.Decision, out.Reason = "ask", "The user's own permission rules ask about this command. "+where+": "+cut(in.Command, 900)
	case verdict.Gathers && !verdict.Network:
		out.Decision, out.Reason = "allow", where+"."
	case v.Mode == "bypassPermissions", rules.allows(call, at):
		out.Decision, out.Reason = "allow", "The user's own permissions allow it. "+where+"."
	default:
		out.Decision, out.Reason = "ask", where+", but cannot tell all that it does: "+cut(in.Command, 900)
	}
	return say(said{Specific: out}), nil
}

// Words of the command that replaces another one. The program's own shell runs it; afterwards that shell is in
// the folder where the original command ended.
const (
	confineHead = "{ fairlead_dir=$("
	confineTail = ` 3>&1 1>&4 4>&-); fairlead_code=$?; } 4>&1; [ -z "$fairlead_dir" ] || cd -- "$fairlead_dir"; (exit $fairlead_code)`
)

// confined returns the command that runs another one in a view. An agent's writes in the folder of a conversation.
func (v *visit) confined(command string, verdict policy.Verdict, main bool, conversation int) string {
	var words, reads, writes []string
	if v.folder != nil {
		reads = []string{v.folder.Path()}
		if !main && conversation > 0 {
			writes = []string{filepath.Dir(v.folder.DialoguePath(conversation))}
		}
	}
	programs := slices.Clone(verdict.Programs)
	for _, name := range policy.GatheringPrograms() {
		if strings.Contains(command, name) { // the fewer, the faster it starts
			programs = append(programs, name)
		}
	}
	args := confine.Command{
		Programs: append(programs, policy.LoadingPrograms()...), Network: verdict.Network, Not: cmp.Or(v.project(v.Dir), "/"),
		Stays: verdict.Gathers && stays(command), Reads: reads, Writes: writes, Agent: !main, Text: command,
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

// conversation is the open conversation in which a command is given; 0: none.
func (v *visit) conversation() int {
	if n := v.worksIn(); n > 0 || v.session.Open == nil {
		return n
	}
	return v.session.Open.N
}

// conversationsBack is how many conversations before the current one are looked at for a command that ends now.
const conversationsBack = 8

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
	_, main := v.who()
	call.Input, call.Confined = raw, main
	verdict := dispatchfolder.Judge(v.session, v.folder, "", call)
	for n, first := v.conversation(), max(0, v.conversation()-conversationsBack); n >= first; n-- {
		if v.confined(command, verdict, main, n) == text {
			return command, true
		}
	}
	return command, false
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
	said, _, _ := policy.Permissions{Allow: r.allow}.Answer(call, nil, where, dispatchfolder.Disk{})
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
