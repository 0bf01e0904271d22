#!/bin/sh
# Commits files of the current folder: commit.sh MESSAGE FILE...
#
# Agents commit side by side, and git lets one at a time: who finds the lock taken
# tries again for some seconds. Only the named files are committed, whatever others
# have added meanwhile. Nothing to commit is no failure.
here=$(cd "$(dirname "$0")" && pwd -P) || exit 2
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" != "$here" ]; then
	echo "$here is not the root of a git repository; make a copy with new.sh and run that" >&2
	exit 2
fi
message=$1
shift
who=${NAME:-nobody}
try=0
while :; do
	if said=$(git add -- "$@" 2>&1); then
		# Not the index: another agent's commit may have written it without what was added just now.
		if [ -z "$(GIT_OPTIONAL_LOCKS=0 git status --porcelain -- "$@")" ]; then
			echo "nothing to commit"
			exit 0
		fi
		if said=$(git -c user.name="$who" -c user.email="$who@example.invalid" \
			-c commit.gpgsign=false -c core.hooksPath=/dev/null -c gc.auto=0 \
			commit -q -m "$message" -- "$@" 2>&1); then
			git log -1 --format='committed %h: %s' -- "$@"
			exit 0
		fi
	fi
	case $said in
	*.lock* | *"cannot lock ref"*) ;;
	*"nothing added to commit"* | *"did not match any file"*) ;; # another agent's commit, between add and commit, removed the files from the index
	*) break ;;
	esac
	try=$((try + 1))
	if [ $try -ge 40 ]; then
		echo "git's lock has been taken for long; where no git runs, remove .git/index.lock" >&2
		break
	fi
	sleep 0.2
done
echo "$said" >&2
exit 1
