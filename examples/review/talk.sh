# What author.sh and reviewer.sh have in common: reading what they were told, and answering
# people. It is read with `.`, from the workspace of one of them.
#
# An agent of any kind is told the same: a first line that says what is asked of it, then what
# was said, each message below a line that says who said it, and each of its lines behind "> ".
set -e
: "${NAME:?and PROMPT are given by the script that runs this}"
if [ "$(git rev-parse --show-toplevel 2>/dev/null)" != "$(cd .. && pwd -P)" ]; then
	echo "this is not the root of a git repository of its own; make a copy with new.sh and run that" >&2
	exit 2
fi
begins=$(printf '%s\n' "$PROMPT" | head -n 1)

# my_turn says whether this is a turn, or only a question that wants an answer.
my_turn() {
	case $begins in
	*": a person "*) return 1 ;;
	*", turn "*) return 0 ;;
	esac
	return 1
}

# A message that arrives during a turn is read when the turn is over, because scripts do one thing
# after the other. The other agent gets it with its own turn and answers it there.
case $begins in
*" while you have the turn. "*) exit 0 ;;
esac

# people prints a line for each message of a person: its number, who said it, its words.
people() {
	printf '%s\n' "$PROMPT" | tr '\t' ' ' | awk '
		function flush() { if (n != "") print n "\t" by "\t" substr(text, 1, 200); n = "" }
		/^#[0-9]+ from a person, / { flush(); n = substr($1, 2); by = $0; sub(/^.* from a person, /, "", by); sub(/:$/, "", by); text = ""; next }
		/^>/ { sub(/^> ?/, ""); text = text (text == "" ? "" : " ") $0; next }
		/^$/ { next }
		{ flush() }
		END { flush() }'
}

# answer_people answers each message of a person that neither agent has answered. Both may have
# received it: the one that makes the folder first answers.
answer_people() {
	mkdir -p ../.answered
	people | while IFS='	' read -r n by text; do
		if mkdir "../.answered/$n" 2>/dev/null; then
			answer "$by" "$text"
		fi
	done
}

answer() {
	case $2 in
	*[Hh]"ow far"* | *[Ss]tatus* | *[Ww]"here are"*)
		echo "$1: functions written: $(ls ../lib/*.sh 2>/dev/null | wc -l | tr -d ' '), of which the review has passed: $(grep -ls '^ok' ../verdict/* | wc -l | tr -d ' ')."
		;;
	*[Bb]egin* | *[Ss]tart* | *"go on"*)
		echo "$1: gladly."
		;;
	*[Tt]hank* | *[Hh]ello*)
		echo "$1: you are welcome."
		;;
	*)
		# What people say is data: it is written down, and never run.
		printf -- '- %s: %s\n' "$1" "$2" >> ../WISHES.md
		(cd .. && sh commit.sh "wishes: note what $1 wants" WISHES.md) > /dev/null
		echo "$1: I have written that down in WISHES.md. I know only what my script knows, so a person has to do it."
		;;
	esac
}

# look is a file as it is now, in a word.
look() { git hash-object "$1"; }
