#!/bin/sh
# The first session writes three lines of the letter. Each later one adds what is missing of nine.
# A line says on which host it was written: this checkout is HOST/.agents/worktrees/RUN.
host=$(basename "${PWD%%/.agents/*}")
lines() { grep -c . letter.txt; }
add() { echo "line $(($(lines) + 1)), written on $host" >> letter.txt; }

touch letter.txt
if [ "$(lines)" -eq 0 ]; then
	add && sleep 1 && add && sleep 1 && add
	exit
fi
while add && [ "$(lines)" -lt 9 ]; do
	sleep 1
done
