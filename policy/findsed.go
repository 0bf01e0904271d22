package policy

import "strings"

// find only reads, except for actions that delete, write and run.
func find(args []value) *problem {
	const (
		plain = "-print -print0 -ls -prune -quit -true -false -empty -executable -readable -writable -nouser -nogroup -depth -d -mount -xdev -follow " +
			"-daystart -noleaf -ignore_readdir_race -noignore_readdir_race -warn -nowarn -not -a -and -o -or -L -H -P -E -X -x -s"
		valued = "-name -iname -path -ipath -wholename -iwholename -lname -ilname -regex -iregex -regextype -type -xtype -maxdepth -mindepth -size " +
			"-mtime -mmin -atime -amin -ctime -cmin -newer -anewer -cnewer -newermt -newerct -newerat -newermm -perm -user -group -uid -gid -links " +
			"-inum -samefile -fstype -printf -used"
		acting = "-delete -exec -execdir -ok -okdir -fprint -fprint0 -fprintf -fls"
	)
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case v.static() && has(acting, v.text):
			p := unknownFlag("find", v.text)
			p.instead = "leave it out, or pipe to a command that only reads: find … -print0 | xargs -0 grep …"
			return p
		case v.static() && strings.HasPrefix(v.text, "-O") || v.static() && has(plain, v.text):
		case v.static() && has(valued, v.text):
			if i++; i < len(args) && (args[i].split || args[i].glob && args[i].opens) {
				return maybeFlag("find", args[i])
			}
			if i < len(args) && args[i].static() && has(acting, args[i].text) {
				return unknownFlag("find", args[i].text)
			}
		case v.static() && strings.HasPrefix(v.text, "-"):
			return unknownFlag("find", cut(v.text))
		case v.maybeFlag():
			return maybeFlag("find", v)
		}
	}
	return nil
}

// sed scripts can write files and run commands: only a few simple forms are allowed.
func sed(args []value) *problem {
	f := flags{short: "nErsuz", valued: "e", long: "quiet silent regexp-extended separate unbuffered null-data expression= posix"}
	if p := f.check("sed", args); p != nil {
		return p
	}
	var scripts []value
	given := false
	for i := 0; i < len(args); i++ {
		v := args[i]
		switch {
		case strings.HasPrefix(v.text, "--expression"):
			given = true
			_, script, attached := strings.Cut(v.text, "=")
			if !attached && i+1 < len(args) {
				i++
				scripts = append(scripts, args[i])
				continue
			}
			scripts = append(scripts, value{text: script, split: !v.static()})
		case strings.HasPrefix(v.text, "-") && !strings.HasPrefix(v.text, "--") && strings.Contains(v.text, "e"):
			given = true
			_, script, _ := strings.Cut(v.text, "e")
			if script == "" && i+1 < len(args) {
				i++
				scripts = append(scripts, args[i])
				continue
			}
			scripts = append(scripts, value{text: script, split: !v.static()})
		}
	}
	for i := 0; !given && i < len(args); i++ {
		if !strings.HasPrefix(args[i].text, "-") {
			scripts, given = []value{args[i]}, true
		}
	}
	for _, v := range scripts {
		if !v.static() || !plainSed(v.text) {
			return &problem{"run a sed script", "the sed script " + v.show() + " is not one of the plain forms (1,5p  /word/p  s/a/b/g  5q)", "use one of them"}
		}
	}
	return nil
}

// plainSed accepts commands that only print, delete from the stream, or substitute.
func plainSed(script string) bool {
	for {
		script = strings.TrimLeft(script, " ;")
		if script == "" {
			return true
		}
		var ok bool
		if script, ok = sedCommand(script); !ok {
			return false
		}
		script = strings.TrimLeft(script, " ")
		if script != "" && script[0] != ';' {
			return false
		}
	}
}

func sedCommand(script string) (rest string, ok bool) {
	script, ok = sedAddress(script)
	if !ok {
		return "", false
	}
	if after, two := strings.CutPrefix(script, ","); two {
		if script, ok = sedAddress(strings.TrimPrefix(after, "+")); !ok {
			return "", false
		}
	}
	script = strings.TrimLeft(script, " !")
	switch {
	case script == "":
		return "", false
	case strings.IndexByte("pdq=", script[0]) >= 0:
		return script[1:], true
	case script[0] != 's' || len(script) < 2 || strings.IndexByte("/|#,:@", script[1]) < 0:
		return "", false
	}
	delimiter, body := script[1], script[2:]
	for range 2 {
		if body, ok = sedUntil(body, delimiter); !ok {
			return "", false
		}
	}
	return strings.TrimLeft(body, "gpIi0123456789"), true
}

// sedAddress skips a line's number, $ or /expression/, if there is one.
func sedAddress(script string) (rest string, ok bool) {
	switch {
	case strings.HasPrefix(script, "/"):
		return sedUntil(script[1:], '/')
	case strings.HasPrefix(script, "$"):
		return script[1:], true
	}
	return strings.TrimLeft(script, "0123456789~"), true
}

// sedUntil skips to the delimiter. A bracket expression may hide one, and a line's end ends more than the
// expression: both are refused.
func sedUntil(text string, delimiter byte) (rest string, ok bool) {
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\n':
			return "", false
		case c == '\\':
			i++
			if i < len(text) && text[i] == '\n' {
				return "", false
			}
		case c == delimiter:
			return text[i+1:], true
		case c == '[' && strings.IndexByte(text[i:], delimiter) >= 0 && hidesDelimiter(text[i:], delimiter):
			return "", false
		}
	}
	return "", false
}

// hidesDelimiter reports whether the brackets that begin here hold the delimiter.
func hidesDelimiter(text string, delimiter byte) bool {
	end := strings.IndexByte(text[1:], ']')
	if end <= 0 { // []…] begins with the bracket itself
		return true
	}
	list := text[1 : end+1]
	return strings.IndexByte(list, delimiter) >= 0 || strings.ContainsAny(list, "[\\") || list == "^"
}
