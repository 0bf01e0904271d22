#!/bin/sh
# Counts the lines of one part: count.sh N
set -e
wc -l < "parts/$1.txt" | tr -d ' ' > "parts/$1.count"
sh report.sh "parts/$1.count"
