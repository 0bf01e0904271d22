#!/bin/sh
# Says that a step is done, with the files that it made: report.sh [FILE...]
# METRICS='"lines": 3' adds measures, GATE='why' says that the run has to go back.
set -e
now=$(date -u +%Y-%m-%dT%H:%M:%S.000000Z)
files=
for file in "$@"; do
	files="$files${files:+, }\"$file\""
done
printf '{"schema": "run_report@v0", "run_id": "%s", "step_id": "%s", "agent": "%s", "status": "COMPLETED", "started_at": "%s", "ended_at": "%s", "artifacts": [%s], "metrics": {%s}%s}\n' \
	"$RUN_ID" "$STEP_ID" "${AGENT_ID:-$STEP_ID}" "$now" "$now" "$files" "$METRICS" "${GATE:+, \"gate_failure\": \"$GATE\"}" > "$REPORT_PATH.new"
mv "$REPORT_PATH.new" "$REPORT_PATH" # atomic: no reader sees half of it
