#!/bin/sh
# Makes a copy of this example with a git repository of its own, and a worktree for each agent:
# new.sh FOLDER
set -e
if [ $# -ne 1 ]; then
	echo "usage: sh new.sh FOLDER" >&2
	exit 2
fi
if [ -e "$1" ] && [ -n "$(ls -A "$1")" ]; then
	echo "$1 is not empty; name a new folder" >&2
	exit 1
fi
from=$(cd "$(dirname "$0")" && pwd -P)
unset GIT_DIR GIT_WORK_TREE GIT_INDEX_FILE
mkdir -p "$1"
cp "$from/fairlead.yaml" "$from/PLAN.md" "$from/check.sh" "$from/README.md" "$1"
cd "$1"
git init -q
printf '.fairlead/\ncoder/\nreviewer/\nagent_state.json*\n.agent_state.json.lock\n' >.gitignore
git add .
git -c user.name=you -c user.email=you@example.invalid -c commit.gpgsign=false -c core.hooksPath=/dev/null \
	commit -q -m "Begin with a plan"
for agent in coder reviewer; do
	git worktree add -q -b "$agent" "$agent"
done
echo "ready; now: cd $1 && fairlead doctor && fairlead up"
