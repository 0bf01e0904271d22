#!/bin/sh
# Each line of the letter is there once, in order.
awk '$1 != "line" || $2 != NR "," { exit 1 }' letter.txt
