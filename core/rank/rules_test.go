package rank_test

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/fairlead-dev/fairlead/core/rank"
)

// crewOf reads the agents of a file.
func crewOf(t *testing.T, name string) []rank.Description {
	t.Helper()
	var crew []rank.Description
	for _, pair := range pairs(t, "testdata/"+name) {
		crew = append(crew, rank.Description{Name: pair[0], Text: pair[1]})
	}
	if len(crew) != 22 {
		t.Fatalf("%s has %d agents", name, len(crew))
	}
	return crew
}

var crews = []string{"crew.txt", "crew-seed.txt", "crew-languages.txt"}

// Each request of seed 002 goes where the seed says, among agents that share its words (SPEC: routing).
func TestRankSeed(t *testing.T) {
	crew := crewOf(t, "crew-seed.txt")
	for _, pair := range pairs(t, "testdata/inputs-seed.txt") {
		r := rank.Rank(pair[1], crew)
		explained(t, pair[1], r)
		if want := strings.TrimPrefix(pair[0], "-"); r.Best != want {
			t.Errorf("%q goes to %q, it should to %q: %s", pair[1], r.Best, want, r.Reason)
		}
	}
}

// No verb that fits any subject selects an agent: not alone, not with words that no description has, not among
// other agents, and not where there is one agent only.
func TestWeakWordsDecideNothing(t *testing.T) {
	verbs := strings.Fields(`create write fix run test make check update add build change start stop show find read open implement develop improve handle
		Create Write creates writing creation creator built
		erstellen erstelle schreibe schreiben mache baue ändere aendere füge starte zeige prüfe pruefe teste suche lies führe repariere
		écris crée ajoute corrige modifie lance vérifie teste cherche montre explique
		创建 检查 修改 添加 生成 运行 测试 作成 確認 追加 実行 修正 変更`)
	for _, name := range crews {
		crew := crewOf(t, name)
		groups := [][]rank.Description{crew}
		for i := range crew {
			groups = append(groups, crew[i:i+1])
		}
		for _, verb := range verbs {
			for _, group := range groups {
				for _, input := range []string{verb, verb + " it, please", verb + " zyxo", "zyxo " + verb + " 12"} {
					if r := rank.Rank(input, group); r.Best != "" {
						t.Errorf("%s: %q goes to %s", name, input, r.Reason)
					}
				}
			}
		}
	}
	// Several of them neither.
	for _, name := range crews {
		crew := crewOf(t, name)
		for _, verb := range strings.Fields("write create fix run test make find read open answer explain give improve") {
			for _, noun := range strings.Fields("story example name question file version answer project system issue test") {
				for _, input := range []string{verb + " a new " + noun, verb + " the old " + noun + " first"} {
					if r := rank.Rank(input, crew); r.Best != "" {
						t.Errorf("%s: %q goes to %s", name, input, r.Reason)
					}
				}
			}
		}
	}
	// Nor is such a word the name of an agent.
	for _, name := range []string{"a", "test", "create", "write", "agent", "help", "schreibe"} {
		crew := []rank.Description{{name, "kettles and lanterns"}, {"b", "umbrellas"}, {"c", "candles"}}
		for _, input := range []string{name, name + " it", "zyxo " + name, "Fix a zyxo"} {
			if r := rank.Rank(input, crew); r.Best != "" {
				t.Errorf("%q goes to %s", input, r.Reason)
			}
		}
	}
	// The same verbs with a subject.
	for input, want := range map[string]string{
		"Create an agent": "agent-foundry", "Fix the ETL": "consolidated-fullstack-data-engineer",
		"Check the GDPR": "compliance-guardian",
	} {
		if r := rank.Rank(input, crewOf(t, "crew-seed.txt")); r.Best != want {
			t.Errorf("%q goes to %q: %s", input, r.Best, r.Reason)
		}
	}
}

// A request for a program goes to an agent that makes programs of any kind, whatever its description calls them.
func TestRequestForAProgram(t *testing.T) {
	others := []rank.Description{
		{"reader", "Use this agent to explain papers and reports"},
		{"tuner", "Use this agent to review Python for speed"},
		{"plans", "Use this agent to write plans, programs of events, and letters"},
	}
	for _, maker := range []string{
		"Full-stack work for the shop", "Application development", "Use for software engineering",
		"An expert in programming", "A coder", "Writes code", "Use to write, change and run programs",
	} {
		crew := append(slices.Clone(others), rank.Description{"maker", maker})
		for input, want := range map[string]string{
			"Write a Python script": "maker", "Create hello.py": "maker", "Fix src/main.rs": "maker", "Implement it in Kotlin": "maker",
			"Change the JavaScript": "maker",
			"Explain the reports":   "reader", "Write a letter": "plans", "Where is the script?": "", "Create hello.txt": "",
		} {
			if r := rank.Rank(input, crew); r.Best != want {
				t.Errorf("%q, %q: %q, it should be %q: %s", maker, input, r.Best, want, r.Reason)
			}
		}
	}
	chinese := []rank.Description{{"甲", "全栈开发"}, {"乙", "处理客户投诉，审查Python"}}
	for input, want := range map[string]string{"写一个Python脚本": "甲", "创建hello.py": "甲", "客户投诉": "乙", "写一首诗": ""} {
		if r := rank.Rank(input, chinese); r.Best != want {
			t.Errorf("%q: %q, it should be %q: %s", input, r.Best, want, r.Reason)
		}
	}
	small := []rank.Description{{"coder", "Fixes and writes code"}, {"docs", "Writes the docs and guides"}}
	for input, want := range map[string]string{"Fix the uploader code": "coder", "Fix it": "", "Write the guides": "docs"} {
		if r := rank.Rank(input, small); r.Best != want {
			t.Errorf("%q: %q, it should be %q: %s", input, r.Best, want, r.Reason)
		}
	}
}

// Small talk stays with MAIN in five languages, with every crew and with every agent alone.
func TestSmallTalk(t *testing.T) {
	talk := []string{
		"What time is it?", "What time is it in Tokyo?", "Hello, what can you help with?", "Thanks!", "Can you explain what you just did?",
		"How are you today?", "ok, go on", "Tell me a joke",
		"Wie spät ist es?", "Wie viel Uhr ist es in Tokio?", "Hallo, wobei kannst du helfen?", "Danke!",
		"Kannst du erklären, was du gerade getan hast?", "Was kannst du tun?", "Guten Morgen", "Erzähl einen Witz",
		"Quelle heure est-il ?", "Quelle heure est-il à Tokyo ?", "Bonjour, que peux-tu faire ?", "Merci !",
		"Peux-tu expliquer ce que tu viens de faire ?", "Comment ça va aujourd'hui ?", "D'accord", "Raconte une blague",
		"现在几点了？", "东京现在几点？", "你好，你能帮我什么？", "谢谢！", "你能解释一下你刚才做了什么吗？", "你今天好吗？", "好的", "讲个笑话",
		"今何時ですか", "東京は今何時ですか", "こんにちは、何ができますか", "ありがとう", "今何をしたか説明できますか", "今日は元気ですか", "はい", "冗談を言って",
	}
	live := rank.Description{
		Name: "live-stream-engineer",
		Text: "Use this agent for real-time data: event streams, time series and live dashboards",
	}
	for _, name := range crews {
		crew := append(crewOf(t, name), live)
		groups := [][]rank.Description{crew}
		for i := range crew {
			groups = append(groups, crew[i:i+1])
		}
		for _, input := range talk {
			for _, group := range groups {
				if r := rank.Rank(input, group); r.Best != "" {
					t.Errorf("%s: %q goes to %s", name, input, r.Reason)
				}
			}
		}
	}
	if r := rank.Rank("Show the event stream in real time", append(crewOf(t, "crew-seed.txt"), live)); r.Best != live.Name {
		t.Error(r.Reason)
	}
}

// A request in another language than the descriptions goes to an agent only by its name, by the name of a file, or by
// an example in that language (SPEC: routing). The words that the languages share are the trap.
func TestOtherLanguages(t *testing.T) {
	english := []rank.Description{
		{"chat-host", "Use this agent to answer questions in the live chat, and for the table of coins"},
		{"art-director", "Use this agent for illustrations, the art of a logo, and for gift cards"},
		{"kafka-engineer", "Use this agent when events of Kafka and Docker arrive twice"},
		{"sql-tuner", "Use this agent to make slow queries in the database faster"},
	}
	german := []rank.Description{
		{"lager", "Für Lieferungen und Bestände im Lager, mit Docker und Kafka"},
		{"mahnwesen", "Schreibt Mahnungen für die Kunden im Gift-Shop"},
	}
	chinese := []rank.Description{{"库存管理", "管理仓库库存和采购订单，用 Docker 部署"}, {"客服助手", "处理客户投诉和退款申请"}}
	bilingual := append(slices.Clone(english),
		rank.Description{"bakery", "Use this agent for orders of the bakery. Examples:\nuser: \"Bestelle die Brötchen für den Montag\""})
	for _, c := range []struct {
		crew        []rank.Description
		input, want string
	}{
		{english, "The customer waits in the live chat", "chat-host"},
		{english, "Mon chat dort sur la table", ""},
		{english, "Il y a des coins avec la table", ""},
		{english, "Es war eine Art Gift in der Suppe", ""},
		{english, "Das Docker und das Kafka sind kaputt", ""},
		{english, "Kafka 的 Docker 坏了", ""},
		{english, "Kafka と Docker が壊れた", ""},
		{english, "La base Kafka et le Docker sont en panne", ""},
		{english, "Kafka Docker", "kafka-engineer"}, // the language cannot be told
		{english, "Frag bitte kafka-engineer, was das ist", "kafka-engineer"},
		{english, "Demande à kafka-engineer ce que c'est", "kafka-engineer"},
		{english, "请让kafka-engineer看看", "kafka-engineer"},
		{english, "kafka-engineerに聞いて", "kafka-engineer"},
		{english, "Sieh dir bitte slow_queries.sql an", "sql-tuner"},
		{english, "Regarde le fichier slow_queries.sql", "sql-tuner"},
		{english, "看一下slow_queries.sql文件", "sql-tuner"},
		{english, "slow_queries.sqlを見て", "sql-tuner"},
		{german, "Die Lieferung ist nicht im Lager", "lager"},
		{german, "The Docker and the Kafka are broken", ""},
		{german, "Write a gift card for the shop", ""},
		{german, "ask mahnwesen about it", "mahnwesen"},
		{chinese, "仓库库存还有多少？", "库存管理"},
		{chinese, "Is the Docker up?", ""},
		{chinese, "Ask 库存管理 to have a look at it", "库存管理"},
		{bilingual, "Bestelle bitte die Brötchen", "bakery"},
		{bilingual, "Das Kafka und das Docker sind kaputt", ""},
	} {
		r := rank.Rank(c.input, c.crew)
		explained(t, c.input, r)
		if r.Best != c.want {
			t.Errorf("%q goes to %q, it should to %q: %s", c.input, r.Best, c.want, r.Reason)
		}
	}
	// A word that is a function word of another language makes no text foreign.
	for _, input := range []string{
		"Fix comment of kafka", "Update man page, kafka events", "Clean bin folder, kafka", "Sans serif kafka",
		"Pour kafka events", "Halt kafka", "Kafka plus Docker", "War room kafka",
	} {
		if r := rank.Rank(input, english); r.Best != "kafka-engineer" {
			t.Errorf("%q: %s", input, r.Reason)
		}
	}
	if r := rank.Rank("Das Kafka ist kaputt", english); r.Reason != "it is in German, and no description in German shares a word with it" {
		t.Error(r.Reason)
	}
}

// All forms of a word find the description that has one of them, and other words do not.
func TestWordForms(t *testing.T) {
	for _, forms := range []string{
		"deprecate deprecates deprecated deprecating deprecation deprecations",
		"optimize optimizes optimized optimizing optimization optimise optimisation optimizer",
		"analyze analyse analyzing analyst analysis",
		"migrate migrated migrating migration migrations",
		"translate translated translating translation translator translators",
		"deploy deploys deployed deploying",
		"query queries querying",
		"plan plans planned planning",
		"refund refunds refunded refunding",
		"Mahnung Mahnungen mahnen mahnt gemahnt mahne",
		"Rechnung Rechnungen rechnen",
		"Prüfung Prüfungen prüfen prüft geprüft Prüfer Prüferin Pruefung pruefen",
		"Übersetzung Übersetzungen übersetzen übersetze übersetzt Übersetzer Übersetzerin Uebersetzung uebersetzen",
		"Vertrag Verträge Verträgen Vertrags Vertraege",
		"Kündigung Kündigungen kündigen kündigt Kuendigung",
		"Störung Störungen stören stört gestört Stoerung",
		"Größe Größen Groesse",
		"Lieferung Lieferungen liefern liefert geliefert Lieferer",
		"Zahlung Zahlungen zahlen zahlt gezahlt",
		"Buchung Buchungen buchen bucht gebucht",
		"Bestellung Bestellungen bestellen bestellt",
		"Mitarbeiter Mitarbeiterin Mitarbeiterinnen Mitarbeitern Mitarbeiters",
	} {
		words := strings.Fields(forms)
		for _, has := range words {
			crew := []rank.Description{{"a", "kettle"}, {"b", has}, {"c", "lantern"}}
			for _, form := range words {
				for _, spelled := range []string{form, strings.ToUpper(form), decomposed.Replace(form)} {
					if r := rank.Rank(spelled, crew); len(r.Scores) != 1 || r.Scores[0].Name != "b" {
						t.Errorf("%q does not find %q: %s", spelled, has, r.Reason)
					}
				}
			}
		}
	}
	for _, pair := range []string{
		"planète plan", "planets plan", "station state", "mission miss", "Rechnung Recht", "Mahnung Mann",
		"format form", "Kunde Kunst", "passion pass", "authorization author", "region register", "content continent",
	} {
		a, b, _ := strings.Cut(pair, " ")
		if r := rank.Rank(a, []rank.Description{{"x", "kettle"}, {"y", b}}); len(r.Scores) != 0 {
			t.Errorf("%q finds %q", a, b)
		}
	}
}

// decomposed writes umlauts as two characters, as file names on macOS do.
var decomposed = strings.NewReplacer("ä", "a\u0308", "ö", "o\u0308", "ü", "u\u0308", "Ü", "U\u0308")

// A word inside a name or a file's name counts as the word alone does.
func TestWordsInNames(t *testing.T) {
	for _, word := range []string{"invoice", "payment", "Mahnung", "Verträge", "contrat", "telemetry"} {
		crew := []rank.Description{{"a", "kettles and lanterns"}, {"b", "everything about " + word}, {"c", "umbrellas"}}
		lower, upper := strings.ToLower(word), string(unicode.ToUpper([]rune(word)[0]))+string([]rune(word)[1:])
		for _, input := range []string{
			lower, "my_" + lower, lower + "_list", "old-" + lower + "-list", lower + ".zip", "src/" + lower + "/zyx",
			"zyx/" + lower + "_zyx.txt", "zyx." + lower,
			"zyx" + upper, "zyx" + upper + "Zyx", upper + "Zyx", "Zyx" + upper, "Zyx" + upper + ".java", "`zyx_" + lower + "()`",
			"#" + lower, "@" + lower, `"` + lower + `"`,
			"看一下" + lower + "_zyx.txt", strings.ToUpper(lower) + "_ZYX",
		} {
			if r := rank.Rank(input, crew); r.Best != "b" {
				t.Errorf("%q does not find %q: %s", input, word, r.Reason)
			}
		}
	}
	for ending, language := range map[string]string{
		"py": "Python", "js": "JavaScript", "ts": "TypeScript", "rs": "Rust", "java": "Java",
		"kt": "Kotlin", "rb": "Ruby", "cpp": "C++", "cs": "C#", "sh": "shell", "sql": "SQL", "tsx": "React", "ipynb": "notebook",
		"tf": "Terraform", "css": "CSS",
	} {
		crew := []rank.Description{{"a", "kettles and lanterns"}, {"b", "everything in " + language}, {"c", "umbrellas"}}
		if r := rank.Rank("Look at zyx."+ending, crew); r.Best != "b" {
			t.Errorf("a file *.%s does not find %s: %s", ending, language, r.Reason)
		}
	}
}
