#!/bin/sh
# Makes a copy of this example: new.sh FOLDER
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
mkdir -p "$1"
cp -R "$from/." "$1"
rm -rf "$1/.fairlead"
echo "ready; now: cd $1 && fairlead up"
