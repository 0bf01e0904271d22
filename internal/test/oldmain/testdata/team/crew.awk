# What lead.sh reads and writes: awk -f crew.awk -v what=WHAT FILE.

# json makes a text of a JSON document out of any text.
function json(s,  i, c, out) {
	out = ""
	for (i = 1; i <= length(s); i++) {
		c = substr(s, i, 1)
		if (c == "\\" || c == "\"") out = out "\\" c
		else if (c == "\n") out = out "\\n"
		else if (c == "\t") out = out "\\t"
		else if (c < " ") out = out " "
		else out = out c
	}
	return "\"" out "\""
}

# xml is the text that an attribute or an element of XML stands for.
function xml(s) {
	gsub(/&lt;/, "<", s)
	gsub(/&gt;/, ">", s)
	gsub(/&quot;|&#34;|&#x22;/, "\"", s)
	gsub(/&apos;|&#39;|&#x27;/, "'", s)
	gsub(/&#9;|&#x9;|&#10;|&#xA;|&#13;|&#xD;/, " ", s)
	gsub(/&amp;/, "\\&", s)
	return s
}

function attribute(tag, name,  at) {
	at = index(tag, " " name "=\"")
	if (!at) return ""
	tag = substr(tag, at + length(name) + 3)
	return xml(substr(tag, 1, index(tag, "\"") - 1))
}

# short is the beginning of a text, as one line.
function short(s) {
	gsub(/[ \t\n]+/, " ", s)
	sub(/^ /, "", s)
	sub(/ $/, "", s)
	return length(s) > 120 ? substr(s, 1, 117) "..." : s
}

# seats: the numbers of the seats that are asked for, a line each.
what == "seats" && /^Free seats: / {
	gsub(/[^0-8]+/, "\n")
	sub(/^\n/, "")
	sub(/\n$/, "")
	print
}
what == "seats" && /^- seat [0-8]:/ { print substr($0, 8, 1) }

# name, born: a file of souls/. Its head, an empty line, and who somebody is, in its own words.
(what == "name" || what == "born") && !soul && /^[a-zA-Z]+: / {
	key = $1
	sub(/:$/, "", key)
	sub(/^[^ ]+ /, "")
	head[key] = $0
	next
}
(what == "name" || what == "born") && !soul && /^$/ { soul = 1; next }
what == "born" && soul { text = text (text == "" ? "" : "\n") $0 }

# report: a line of the list of those who are awake.
what == "report" {
	at = index($0, "\t")
	all = all (all == "" ? "" : ",") "{\"name\":" json(substr($0, at + 1)) ",\"status\":\"alive\",\"gridPosition\":" substr($0, 1, at - 1) "}"
}

# keep takes the message that has come to its end for the last one, unless it is a greeting like
# the one that is to be made of it.
function keep() {
	sub(/^\[[^]]*\]: /, "", last)
	if (last != "" && last !~ /^I am awake\./) told = last
	last = ""
}

# wake: an <agent> of what is told; one line for each: seat, name, what it says first.
what == "wake" && /^<agent / { name = attribute($0, "name"); seat = attribute($0, "position"); soultext = last = told = within = "" }
what == "wake" && /<soul>/ { within = "soul" }
what == "wake" && /<transcript>/ { within = "transcript" }
what == "wake" && within != "" {
	line = $0
	gsub(/^.*<(soul|transcript)>|<\/(soul|transcript)>.*$/, "", line)
	line = xml(line)
	if (within == "soul" && line ~ /[^ ]/) soultext = soultext " " line
	if (within == "transcript" && line ~ /^\[/) { keep(); last = line }
	if (within == "transcript" && line ~ /^  [^ ]/) last = last " " line
	if ($0 ~ /<\/(soul|transcript)>/) within = ""
}
what == "wake" && /^<\/agent>/ {
	keep()
	words = "I am awake. I know who I am: \"" short(soultext) "\""
	words = words (told == "" ? " I remember nothing else yet." : " The last that I said was: \"" short(told) "\"")
	print seat "\t" name "\t" words
}

# people: a line for each message of a person: who said it, its words.
function flush() {
	if (by != "") print by "\t" substr(said, 1, 200)
	by = ""
}
what == "people" && /^#[0-9]+ from a person, / {
	flush()
	by = $0
	sub(/^.* from a person, /, "", by)
	sub(/:$/, "", by)
	gsub(/\t/, " ", by)
	said = ""
	next
}
what == "people" && /^>/ {
	line = $0
	sub(/^> ?/, "", line)
	gsub(/\t/, " ", line)
	said = said (said == "" ? "" : " ") line
	next
}
what == "people" && /^$/ { next }
what == "people" { flush() }

END {
	if (what == "name") print head["name"]
	if (what == "people") flush()
	if (what == "report") print "[AGENT_STATUS] {\"agents\":[" all "]}"
	if (what == "born") {
		print "[AGENT_REGISTERED] {\"name\":" json(head["name"]) ",\"color\":" json(head["color"]) ",\"colorName\":" json(head["colorName"]) \
			",\"gender\":" json(head["gender"]) ",\"gridPosition\":" seat ",\"faceVariant\":{\"eyes\":" json(head["eyes"]) ",\"mouth\":" json(head["mouth"]) \
			"},\"individuationArtifact\":" json(text) "}"
		print "[" head["name"] "]: " short(text) # from here on it is somebody who can speak
	}
}
