package probe

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/fairlead-dev/fairlead/internal/file"
	"github.com/fairlead-dev/fairlead/internal/version"
)

// rememberedMax is how long a program's answer is believed: some answers depend on the system, such as whether a
// sandbox works.
const rememberedMax = 24 * time.Hour

// answers are the programs' answers of earlier calls, a file for each. The zero value remembers nothing.
type answers struct{ dir string }

// rememberedAnswers returns the answers in this user's cache folder. Where there is no such folder, none is made.
func rememberedAnswers() answers {
	dir, err := os.UserCacheDir()
	if err != nil {
		return answers{}
	}
	if _, err := os.Stat(filepath.Dir(dir)); err != nil {
		return answers{}
	}
	return answers{filepath.Join(dir, "fairlead", "programs")}
}

// file names the file for an answer: it depends on this build, on what is asked and in which folder, and on the
// program's file, which a new version replaces. Empty: the answer is not remembered. A program with variables of its
// own is always asked, because no file may contain what a program could print of them.
func (a answers) file(asked Request, env []string) string {
	if a.dir == "" || len(env) > 0 {
		return ""
	}
	type identity struct {
		Path  string
		Bytes int64
		At    time.Time
	}
	words := asked.Command
	if len(words) == 0 {
		words = []string{asked.Driver} // the driver's default program has its name
	}
	var files []identity
	for i, word := range words {
		path := word
		if i == 0 {
			found, err := exec.LookPath(word)
			if err != nil {
				return ""
			}
			path = found
		}
		if path, err := filepath.EvalSymlinks(path); err == nil && filepath.IsAbs(path) {
			if info, err := os.Stat(path); err == nil {
				files = append(files, identity{path, info.Size(), info.ModTime()})
			}
		}
	}
	if len(files) == 0 {
		return ""
	}
	text, err := json.Marshal([]any{version.String(), asked.Driver, asked.Command, asked.Dir, asked.Model, asked.Mode, files})
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(text)
	return filepath.Join(a.dir, hex.EncodeToString(sum[:16])+".json")
}

// recall returns an answer that was given less than rememberedMax ago.
func recall(file string) (reply Reply, ok bool) {
	info, err := os.Lstat(file)
	if file == "" || err != nil || !info.Mode().IsRegular() || info.Size() > probeBytesMax || time.Since(info.ModTime()) > rememberedMax {
		return reply, false
	}
	text, err := os.ReadFile(file)
	return reply, err == nil && json.Unmarshal(text, &reply) == nil && reply.Found.Program != ""
}

// remember stores an answer without faults and warnings, and removes those that are too old. A failure only means
// that the program is asked again.
func remember(path string, reply Reply) {
	if path == "" || reply.Fault != "" || len(reply.Found.Warnings) > 0 {
		return
	}
	dir := filepath.Dir(path)
	text, err := json.Marshal(reply)
	if err != nil || os.MkdirAll(dir, 0o700) != nil {
		return
	}
	old, _ := os.ReadDir(dir)
	for _, entry := range old {
		if info, err := entry.Info(); err == nil && time.Since(info.ModTime()) > rememberedMax {
			_ = os.Remove(filepath.Join(dir, entry.Name()))
		}
	}
	_ = file.ReplaceUnsynced(path, text, 0o600)
}
