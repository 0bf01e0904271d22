#!/bin/sh
# Runs the tests that there are.
set -e
if [ ! -e slug.sh ]; then
	echo "nothing to test yet"
	exit 0
fi
got=$(echo "Hello, World" | sh slug.sh)
if [ "$got" != "hello-world" ]; then
	echo "slug.sh makes $got of Hello, World" >&2
	exit 1
fi
echo "all is well"
