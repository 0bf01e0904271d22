#!/bin/sh
# Makes a copy of this example with a git repository of its own: new.sh FOLDER
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
cp -R "$from/." "$1"
cd "$1"
rm -rf .git .fairlead
git init -q
git add .
git -c user.name=you -c user.email=you@example.invalid -c commit.gpgsign=false -c core.hooksPath=/dev/null \
	commit -q -m "Begin with a greeting"
git config user.name you
git config user.email you@example.invalid
git branch greeting
echo "ready; now: cd $1 && fairlead up"
