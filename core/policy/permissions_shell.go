package policy

import (
	"encoding/json"
	"path"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// directoryKeys are the arguments with which some programs run a command in another folder.
const directoryKeys = "directory cwd workdir working_directory workingDirectory working_dir workingDir dir"

// isShellScript reports whether a list of words is bash -c TEXT, as some programs send every command.
func isShellScript(raw json.RawMessage) bool {
	var words []string
	return json.Unmarshal(raw, &words) == nil && len(words) == 3 && has("sh bash zsh dash", path.Base(words[0])) &&
		(words[1] == "-c" || words[1] == "-lc")
}

// notPlain returns what makes a command line too complex to match; empty: nothing.
func notPlain(n syntax.Node) string {
	switch n := n.(type) {
	case *syntax.Stmt:
		if n.Background || n.Coprocess || n.Disown {
			return "a part of it runs in the background"
		}
	case *syntax.Redirect:
		if !goesNowhere(n) {
			return redirectDoubt
		}
	case *syntax.CallExpr:
		if len(n.Assigns) > 0 {
			return "it sets variables"
		}
	case *syntax.ParamExp:
		if n.Param == nil || n.Param.Value != "HOME" {
			return "it holds a variable"
		}
	case *syntax.SglQuoted:
		if n.Dollar {
			return "it holds quotes that shells read in different ways"
		}
	case *syntax.DblQuoted:
		if n.Dollar {
			return "it holds quotes that shells read in different ways"
		}
	case *syntax.CmdSubst, *syntax.ProcSubst, *syntax.ArithmExp, *syntax.ExtGlob:
		return "it holds a substitution"
	case *syntax.FuncDecl, *syntax.DeclClause, *syntax.ArithmCmd, *syntax.LetClause, *syntax.CoprocClause, *syntax.TestClause,
		*syntax.TestDecl,
		*syntax.CaseClause, *syntax.ForClause:
		return "it is a program, and no command"
	}
	return ""
}

const redirectDoubt = "a redirect reads or writes a file"

// goesNowhere reports whether a redirect neither reads nor writes a file: 2>&1, >/dev/null.
func goesNowhere(r *syntax.Redirect) bool {
	if r.Word == nil || r.N != nil && strings.HasPrefix(r.N.Value, "{") {
		return false
	}
	word := r.Word.Lit()
	switch r.Op {
	case syntax.DplIn, syntax.DplOut:
		return isDescriptor(word)
	case syntax.RdrIn, syntax.RdrOut, syntax.AppOut, syntax.RdrAll, syntax.AppAll:
		return word == "/dev/null"
	}
	return false
}

// isOurs reports whether a place is an existing folder of the workspace, and not in a nested repository: git runs
// programs that such a repository names, even when it only reads.
func (j *judge) isOurs(f File) bool {
	workspace := j.both(j.where.Repo)
	if f.Kind != Folder {
		return false
	}
	const levelsMax = 64 // of a workspace; deeper nesting is made on purpose
	for folder, level := f.Path, 0; !slices.Contains(workspace, folder); folder, level = path.Dir(folder), level+1 {
		if !below(folder, workspace) || level > levelsMax {
			return false
		}
		for _, mark := range []string{".git", "HEAD"} { // HEAD marks a bare repository
			if f, err := j.disk.Look(join(folder, mark)); err != nil || f.Kind != Missing {
				return false
			}
		}
	}
	return true
}
