package uitest

// PlanCodeReviewFile is the file of the workflow in RunFiles.
const PlanCodeReviewFile = "workflows/plan-code-review.yaml"

// RunFiles are the files of a repository in which a real daemon can run the workflow
// plan-code-review with no account: a script does the steps, and its gate fails once.
func RunFiles() map[string]string {
	return map[string]string{PlanCodeReviewFile: planCodeReviewYAML, "workflows/step.sh": stepScript}
}

const planCodeReviewYAML = `name: plan-code-review
steps:
  - id: plan
    command: [sh, workflows/step.sh]
  - id: code
    command: [sh, workflows/step.sh]
    needs: [plan]
  - id: test
    command: [sh, workflows/step.sh]
    needs: [code]
  - id: review
    command: [sh, workflows/step.sh, gate]
    needs: [code, test]
    loop_back_to: code
  - id: approve
    command: [sh, workflows/step.sh]
    needs: [review]
    human_in_the_loop: true
    input_schema:
      type: object
      required: [risk]
      properties:
        approved: {type: boolean}
        risk: {enum: [low, high], title: Risk, description: How bad it can get}
        comment: {type: string, title: Comment}
        canaries: {type: integer, title: Canaries, default: 2}
        notify: {type: boolean, title: Tell the others}
  - id: release
    command: [sh, workflows/step.sh]
    needs: [approve]
`

const stepScript = `#!/bin/sh
# Does a step by saying so, once the file hold is gone. With the word gate it sends the run back,
# the first time.
while [ -e workflows/hold ]; do sleep 0.02; done
echo "working on $STEP_ID, attempt $STEP_ATTEMPT"
now=$(date -u +%Y-%m-%dT%H:%M:%SZ)
failure=
if [ "$1" = gate ] && [ ! -e ".looped-$RUN_ID" ]; then
  touch ".looped-$RUN_ID"
  failure=',"gate_failure":"a test is missing"'
fi
printf '<<<RUN_REPORT_JSON\n{"schema":"agent_run_report_v1","run_id":"%s","step_id":"%s","agent":"%s","status":"COMPLETED","started_at":"%s","ended_at":"%s","artifacts":[],"metrics":{"lines":3},"logs":["%s is done"]%s}\nRUN_REPORT_JSON>>>\n' \
  "$RUN_ID" "$STEP_ID" "${AGENT_ID:-script}" "$now" "$now" "$STEP_ID" "$failure"
`

// MeetingYAML, at the end of a fairlead.yaml whose list of agents comes last before it, makes the
// channel of [RealMeeting]; its agents run MeetingFile.
const MeetingYAML = `  mate:
    driver: exec
    command: [sh, ../meeting.sh]
    workspace: mate
  pilot:
    driver: exec
    command: [sh, ../meeting.sh]
    workspace: pilot
channels:
  quay:
    agents: [mate, pilot]
    maxRounds: 1
turnConfig:
  defaultTimeoutSeconds: 10
`

// MeetingFile is the file of MeetingScript.
const MeetingFile = "meeting.sh"

// MeetingScript is an agent in a channel that answers every prompt, at once or slowly.
const MeetingScript = `prompt=$(cat)
case "$prompt" in
*"which quay"*) echo "the north quay" ;;
*"please be slow"*) exec sleep 60 ;;
*) echo "berth seven is free" ;;
esac
echo TURN_COMPLETE
`

// RealMeeting is the channel of MeetingYAML, whose agents answer by themselves.
func RealMeeting() *ChannelStory {
	return &ChannelStory{Name: "quay", Says: "berth seven", SaysAside: "the north quay"}
}
