#!/bin/sh
# Runs every test of the library and prints a line for each: ok or FAIL, its name,
# and what went wrong. Exit code 1 where one failed.
cd "$(dirname "$0")/coder" || exit 2
failed=0
for t in test/*.test.sh; do
	[ -e "$t" ] || { echo "no tests yet"; exit 0; }
	name=$(basename "$t" .test.sh)
	if why=$(sh "$t" 2>&1); then
		echo "ok   $name"
	else
		echo "FAIL $name: $why"
		failed=1
	fi
done
exit $failed
