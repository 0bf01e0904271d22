package runstate

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/fairlead-dev/fairlead/internal/clip"
)

const (
	templateBytesMax = 16 << 10 // a longer one should be a program that the template calls
	templateWordsMax = 1000     // for the same reason
)

// placeholders lists a template's placeholders in the order of the documentation.
var placeholders = []string{"run_id", "step_id", "agent", "prompt", "repo", "report", "attempt", "manual_input"}

// CheckTemplate returns what is wrong with a --command-template, or nil.
func CheckTemplate(template string) error {
	_, err := templateWords(template)
	return err
}

// templateWord is one word of a template without its quotes.
type templateWord struct {
	text   string
	quoted bool // part of it was in quotes or behind a \
}

// fromTemplate splits a template into words as a shell would, and then fills in the values: a value is never
// split, whatever it holds. The seed's tool fills in first and splits then, which differs only for values
// with spaces and quotes, where the seed's way fails. An unquoted word that becomes empty is left out, as in
// the seed's tool.
func (c StepCommand) fromTemplate() ([]string, error) {
	words, err := templateWords(c.Template)
	if err != nil {
		return nil, err
	}
	values := map[string]string{
		"run_id": c.RunID, "step_id": c.StepID, "agent": c.Agent, "prompt": c.Prompt, "repo": c.Repo, "report": c.Report,
		"attempt": strconv.Itoa(c.Attempt), "manual_input": c.ManualInput,
	}
	var argv []string
	for i, w := range words {
		script := i >= 2 && shellOption(words[i-1].text) && slices.ContainsFunc(words[:i-1], isShell)
		text, err := fill(w.text, func(name string) (string, error) {
			value := values[name]
			if script && strings.ContainsFunc(value, shellReads) {
				return "", fmt.Errorf("--command-template: {%s} is %q, and the shell would read more than a word in it; write \"$%s\" instead", name, clip.Text(value, 80), envNames[name])
			}
			return value, nil
		})
		if err != nil {
			return nil, err
		}
		if text != "" || w.quoted {
			argv = append(argv, text)
		}
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, errors.New("--command-template: the program comes to nothing; begin with its name")
	}
	return argv, nil
}

// envNames maps placeholders to the environment variables with the same value.
var envNames = map[string]string{
	"run_id": "RUN_ID", "step_id": "STEP_ID", "agent": "AGENT_ID", "prompt": "PROMPT_PATH", "repo": "REPO_DIR", "report": "REPORT_PATH",
	"attempt": "STEP_ATTEMPT", "manual_input": "MANUAL_RESULT_PATH",
}

func isShell(program templateWord) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "ksh", "ash"}, filepath.Base(program.text))
}

// shellOption reports whether a word is -c, also combined with other options: -ec.
func shellOption(word string) bool {
	return len(word) >= 2 && word[0] == '-' && word[1] != '-' && word[len(word)-1] == 'c'
}

// shellReads reports whether a character is special for a shell.
func shellReads(r rune) bool {
	return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("_@%+=:,./-", r))
}

// operators are words that only a shell understands; as a separate word, each is a mistake.
var operators = []string{"|", "||", "&&", "&", ";", ">", ">>", "<", "<<", "2>&1", "2>", "&>"}

func templateWords(template string) ([]templateWord, error) {
	if len(template) > templateBytesMax {
		return nil, fmt.Errorf("--command-template: %d bytes, %d at most; put it into a script", len(template), templateBytesMax)
	}
	words, err := splitWords(template)
	if err != nil {
		return nil, fmt.Errorf("--command-template: %w", err)
	}
	if len(words) == 0 {
		return nil, errors.New("--command-template: is empty; begin with a program")
	}
	for _, w := range words {
		if !w.quoted && slices.Contains(operators, w.text) {
			return nil, fmt.Errorf("--command-template: no shell reads it, so %s is only a word; write sh -c '…' around it", w.text)
		}
		if _, err := fill(w.text, func(string) (string, error) { return "x", nil }); err != nil {
			return nil, err
		}
	}
	return words, nil
}

// splitWords splits a text into words by the quotes of a POSIX shell, as Python's shlex does: single and double ones, and \.
// A library that reads shell would expand $x and {a,b}, leave out what follows #, and refuse & and ; in a word.
func splitWords(s string) ([]templateWord, error) {
	var words []templateWord
	var word strings.Builder
	begun, quoted := false, false
	end := func() {
		if begun {
			words = append(words, templateWord{word.String(), quoted})
		}
		word.Reset()
		begun, quoted = false, false
	}
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case 0:
			return nil, errors.New("has a zero byte")
		case ' ', '\t', '\n', '\r':
			end()
		case '\\':
			if i++; i == len(s) {
				return nil, errors.New(`ends with a \; nothing comes after it`)
			}
			word.WriteByte(s[i])
			begun, quoted = true, true
		case '\'', '"':
			n, err := quotedPart(&word, s[i:])
			if err != nil {
				return nil, err
			}
			i += n
			begun, quoted = true, true
		default:
			word.WriteByte(c)
			begun = true
		}
		if len(words) > templateWordsMax {
			return nil, fmt.Errorf("more than %d words; put them into a script", templateWordsMax)
		}
	}
	end()
	return words, nil
}

// quotedPart reads a quoted part at the beginning of s and returns its length.
func quotedPart(word *strings.Builder, s string) (int, error) {
	mark := s[0]
	for i := 1; i < len(s); i++ {
		switch {
		case s[i] == mark:
			return i, nil
		case s[i] == 0:
			return 0, errors.New("has a zero byte")
		case s[i] == '\\' && mark == '"' && i+1 < len(s) && (s[i+1] == '"' || s[i+1] == '\\'):
			i++
		}
		word.WriteByte(s[i])
	}
	return 0, fmt.Errorf("a quote %c is not closed", mark)
}

// fill replaces {name} by values; {{ and }} become braces.
func fill(text string, value func(name string) (string, error)) (string, error) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		switch {
		case strings.HasPrefix(text[i:], "{{"), strings.HasPrefix(text[i:], "}}"):
			b.WriteByte(text[i])
			i++
		case text[i] == '{':
			name, _, closed := strings.Cut(text[i+1:], "}")
			if !closed || !slices.Contains(placeholders, name) {
				if closed {
					name += "}"
				}
				return "", fmt.Errorf("--command-template: {%s means nothing; there is {%s}, and {{ is a brace", clip.Text(name, quoteMax),
					strings.Join(placeholders, "} {"))
			}
			v, err := value(name)
			if err != nil {
				return "", err
			}
			b.WriteString(v)
			i += len(name) + 1
		case text[i] == '}':
			return "", errors.New("--command-template: a } closes nothing; write }} for a brace")
		default:
			b.WriteByte(text[i])
		}
	}
	return b.String(), nil
}
