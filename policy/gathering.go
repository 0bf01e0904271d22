package policy

import (
	"strings"
)

// harmless returns what is wrong with a command in MAIN; nil: it only gathers information, whatever its words
// turn out to be. This is the list: a command that is not in it is denied.
func (s *shell) harmless(name string, args []value) *problem {
	switch name {
	case "ls", "pwd", "echo", "stat", "df", "du", "basename", "dirname", "realpath", "readlink", "which", "type", "id", "whoami", "groups",
		"logname", "uname", "nproc", "uptime", "who", "w", "ps", "printenv", "locale", "getconf", "lscpu", "tty", "true", "false", ":",
		"seq", "exit", "break", "continue", "return":
		return nil
	case "cat", "head", "wc", "grep", "egrep", "fgrep", "cut", "tr", "tac", "rev", "nl", "od", "fold", "expand", "unexpand", "comm", "join",
		"paste", "cmp", "column", "hexdump", "cksum", "sum", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum",
		"b2sum", "shasum":
		s.readsAll(args)
		return nil
	case "test", "[":
		return bracket(args)
	case "printf":
		return printf(args)
	case "read":
		return s.readVariables(args)
	case "set":
		return setOptions(args)
	case "env":
		if s.isListing(args) {
			return nil
		}
	case "find":
		return find(args)
	case "sed":
		s.readsAll(args)
		return sed(args)
	case "git":
		return s.git(args)
	case "date":
		return date(args)
	case "tail":
		s.readsAll(args)
		return tail(args)
	case "python3", "python", "node", "ruby", "java", "gcc", "clang":
		if len(args) == 1 && args[0].static() && args[0].text == "--version" {
			return nil
		}
	default:
		if f, ok := flagsOf(name); ok {
			s.readsAll(args)
			return f.check(name, args)
		}
	}
	return notGathering(name)
}

// readsAll denies MAIN devices among the files that a command reads.
func (s *shell) readsAll(args []value) {
	for _, v := range args {
		if !strings.HasPrefix(v.text, "-") {
			s.reads(v)
		}
	}
}

// flagsOf lists the harmless flags of programs that have others too.
func flagsOf(name string) (flags, bool) {
	switch name {
	case "sort": // not -o, -T, --compress-program
		return flags{
			short: "bdfghiMnRrVcCmsuz", valued: "ktS",
			long: "reverse numeric-sort unique key= field-separator= human-numeric-sort version-sort ignore-case general-numeric-sort stable " +
				"zero-terminated check month-sort random-sort dictionary-order ignore-leading-blanks ignore-nonprinting merge parallel= debug",
		}, true
	case "uniq": // a second file is written
		return flags{
			short: "cdDiuz", valued: "fsw", most: 1,
			long: "count repeated ignore-case unique zero-terminated skip-fields= skip-chars= check-chars=",
		}, true
	case "xxd": // a second file is written
		return flags{short: "abeipu", valued: "clgs", most: 1}, true
	case "base64":
		return flags{short: "dDi", valued: "w", long: "decode wrap= ignore-garbage"}, true
	case "tree": // not -o, nor -R, which writes pages
		return flags{
			short: "adfilxshDFpugtrcUvnCASNQJX", valued: "LPI",
			long: "dirsfirst filesfirst noreport gitignore prune du si inodes device matchdirs ignore-case metafirst filelimit= timefmt= sort=",
		}, true
	case "file": // not -C, -m, -z
		return flags{short: "biLhkprN0", valued: "F", long: "brief mime mime-type mime-encoding dereference no-dereference keep-going raw no-pad print0 separator= extension"}, true
	case "diff": // not -l, which runs pr
		return flags{
			short: "abBcdeEiNnpPqrstTuwyZ0123456789", valued: "CDFILSUWxX",
			long: "unified= context= brief recursive side-by-side ignore-case ignore-all-space ignore-space-change ignore-blank-lines ignore-trailing-space " +
				"new-file text report-identical-files exclude= width= suppress-common-lines color no-dereference minimal unidirectional-new-file " +
				"label= normal strip-trailing-cr expand-tabs show-c-function left-column starting-file= ignore-matching-lines= speed-large-files",
		}, true
	case "jq":
		return flags{
			short: "rcnsejSCMRah", valued: "f",
			long: "raw-output compact-output null-input slurp exit-status join-output sort-keys color-output monochrome-output raw-input ascii-output " +
				"tab indent= arg= args jsonargs seq stream unbuffered from-file= help version",
		}, true
	case "rg": // not --pre, --hostname-bin, -z
		return flags{
			short: "nNiSsvwxclLoHIuUaPFhqp0.", valued: "eABCgtTmMjrdfE",
			long: "line-number no-line-number ignore-case smart-case case-sensitive invert-match word-regexp line-regexp count count-matches " +
				"files-with-matches files-without-match only-matching with-filename no-filename no-heading heading hidden no-ignore no-ignore-vcs " +
				"unrestricted multiline multiline-dotall text pcre2 fixed-strings quiet null files sort= sortr= glob= iglob= type= type-not= type-list " +
				"max-count= max-columns= max-depth= max-filesize= after-context= before-context= context= replace= regexp= file= color= colors= " +
				"stats json trim vimgrep column no-column passthru follow one-file-system no-messages no-config version help pretty encoding= threads=",
		}, true
	case "hostname": // an argument sets it
		return flags{short: "fsiIdAay", long: "fqdn short ip-address all-ip-addresses domain all-fqdns", none: true}, true
	case "arch": // with an argument it runs a program on some systems
		return flags{none: true}, true
	case "strings":
		return flags{short: "afow", valued: "nte"}, true
	case "free":
		return flags{short: "bkmghltw", long: "bytes kibi mebi gibi human lohi total wide", none: true}, true
	}
	return flags{}, false
}

// date shows the time; another argument sets it.
func date(args []value) *problem {
	f := flags{short: "uRj", valued: "drv", long: "utc universal iso-8601 rfc-3339= rfc-email date= reference= debug"}
	var rest []value
	for _, v := range args {
		switch {
		case v.static() && strings.HasPrefix(v.text, "+"):
			continue
		case v.static() && strings.HasPrefix(v.text, "-I"):
			continue
		}
		rest = append(rest, v)
	}
	f.none = true
	return f.check("date", rest)
}

func tail(args []value) *problem {
	for _, v := range args {
		if long, ok := strings.CutPrefix(v.text, "--"); ok && long != "" && (strings.HasPrefix(long, "f") || strings.HasPrefix(long, "re")) ||
			!ok && strings.HasPrefix(v.text, "-") && strings.ContainsAny(v.text, "fF") {
			return &problem{"wait for a file to grow", "tail " + v.show() + " never ends", "leave the flag out"}
		}
	}
	return flags{short: "qvz0123456789", valued: "ncb", long: "lines= bytes= quiet silent verbose zero-terminated"}.check("tail", args)
}

// printf writes to standard output, unless -v names a variable.
func printf(args []value) *problem {
	trouble := &problem{"set a variable", "this printf may set a variable, and run the code in its index", "give the format as plain text"}
	if len(args) == 0 {
		return nil
	}
	if v := args[0]; v.static() && v.text == "--" && len(args) > 1 {
		args = args[1:]
	} else if strings.HasPrefix(v.text, "-v") {
		return trouble
	}
	format := args[0]
	if !format.static() {
		return trouble
	}
	for text := format.text; ; {
		_, after, ok := strings.Cut(text, "%")
		if !ok {
			return nil
		}
		conversion := strings.TrimLeft(after, "-+ #0123456789.*'hljztLq")
		if strings.HasPrefix(conversion, "n") {
			return trouble
		}
		text = strings.TrimPrefix(after, "%")
	}
}

// bracket handles test and [. Some shells evaluate a number to compare as an expression, and all of them a
// variable that is looked up: then the content of an index runs.
func bracket(args []value) *problem {
	if n := len(args); n > 0 && args[n-1].static() && args[n-1].text == "]" {
		args = args[:n-1]
	}
	if len(args) > 0 && args[0].static() && args[0].text == "!" {
		args = args[1:]
	}
	known := true
	for i, v := range args {
		switch {
		case v.split || v.glob:
			return &problem{"test what is not known", "the word " + v.show() + " of test may turn out to be several", "put it in double quotes"}
		case !v.static():
			known = false
		case v.text == "-v" || v.text == "-R":
			return &problem{"test what calculates", "test " + v.text + " looks into variables, and runs the code in their index", "leave it out"}
		case has("-eq -ne -lt -le -gt -ge", v.text) && i > 0 && !(isNumber(args[i-1].text) && i+1 < len(args) && isNumber(args[i+1].text)):
			return &problem{"test what calculates", "test " + v.text + " calculates in some shells, and runs the code in an index", "compare plain numbers, or text with ="}
		}
	}
	switch {
	case known, len(args) == 1, len(args) == 2 && args[0].static(), len(args) == 3 && args[1].static():
		return nil
	}
	return &problem{"test what is not known", "this test may turn out to be another one when it runs", "test one thing at a time"}
}

// readVariables handles read, which sets the named variables.
func (s *shell) readVariables(args []value) *problem {
	for i, v := range args {
		switch {
		case v.static() && (v.text == "-r" || v.text == "-s") && i == 0:
		case !v.static() || !assignable(v.text):
			if v.static() && strings.Trim(v.text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == "" {
				return &problem{"change the shell's variables", "the assignment of " + cut(v.text) + " changes what commands do", "choose a name in lower case"}
			}
			return &problem{"change the shell's variables", "read takes plain names in lower case here, and no flag but -r", "write read -r name"}
		default:
			s.vars[v.text] = string(hole)
		}
	}
	return nil
}

// setOptions handles set: only options that make a script stricter are allowed.
func setOptions(args []value) *problem {
	for _, v := range args {
		switch {
		case v.static() && has("-e -u -eu -ue -x -f -eo -euo -o pipefail -ex -eux -euxo", v.text):
		default:
			return &problem{"change the shell's options", "set " + v.show() + " changes how later commands are read", "leave it out"}
		}
	}
	return nil
}
