package rank

// wordLists is what words say about a request, in sections. Compiled by hand for this package: function words from the
// closed classes of each language's grammar, and verbs and nouns that fit any subject. No word list of another project
// was used.
//
// [en] to [es] are function words and greetings: they say nothing about the work, and show the language of a text; a word
// of several lists shows none. [any] are the same in no particular language, and those that are other words in English
// (a comment, a man page, sans serif).
const wordLists = `
[any]
a i o e g s t d m c y agent agents task tasks user users ok okay hm etc eg ie
man bin hat war mal halt mag die dies alle also eben comment car plus par son ton sans pour tout sous elle si mine
[en]
an the and or but if then else so as at by for from in into of off on onto out over to up with without within about after before between through
under than too very via is are was were be been being am do does did done doing has have had having will would can could shall should may might must
not no nor yes me my mine you your yours he him his she her it its we us our ours they them their this that these those there here what which who
whom whose when where why how all any both each few more most other others some such only own same just also now let lets ll re ve don didn doesn isn
aren won wouldn couldn please thanks thank hello hi hey bye goodbye welcome sorry great good nice cool help helps need needs want wants like use used
uses using work works whenever one get got see know think tell say said ask thing things something anything way much many again still include
includes including against because while until since already never always often maybe really well back away once ever every until upon toward
[de]
der die das den dem des ein eine einen einem einer eines und oder aber ist sind war waren bin bist sein seid du ich er sie wir ihr es man mir mich dir
dich uns euch ihm ihn ihnen nicht kein keine keinen mit von vom zu zum zur für fuer auf aus bei beim im ins an am um nach vor über ueber unter durch
gegen ohne seit bis als wie wo wer wen wem was wann warum wieso woher wohin welche welcher welches welchen dass daß ob wenn weil denn doch noch schon
sehr auch nur so dann hier da dort dies diese dieser dieses diesen diesem jene mein meine meinen meinem meiner dein deine unser unsere euer ihre ihren
bitte danke hallo ja nein kannst kann können koennen könntest wobei hast habe hat haben hatte hätte wird werden wurde will willst wollen soll sollst
sollen muss musst müssen muessen darf mag möchte moechte getan tun tut gerade gut guten gute schön schoen vielen dank weiter genau alles etwas nichts
geht mal eben halt sich brauche braucht brauchen viel viele mehr jede jeder jedes alle allen davon dazu daran darauf damit namens
[fr]
le la les un une des du de et ou où est sont était suis es ai as ont avez avons être avoir je tu il elle on nous vous ils elles me moi toi te se lui leur
leurs ne pas plus que qui quoi quel quelle quels quelles ce cet cette ces ça cela ci mon ma mes ton ta tes son sa ses nos notre vos votre avec pour
dans sur sous par à en au aux chez vers sans entre depuis pendant après avant mais donc car si comme aussi très bien fait faire fais font peux peut
pouvez veux veut voulez dois doit faut va vas vont aller comment pourquoi quand combien merci beaucoup bonjour bonsoir salut oui non accord tout toute
tous toutes l j n qu y aide aider plaît plait besoin
[es]
el los las uno una unos unas y o pero es son soy eres está están estoy yo tú él ella nosotros me te se su sus mi mis tu tus no con por para en de del al
que qué quién cómo cuándo dónde cuánto gracias hola sí este esta estos estas ese esa eso lo le les más muy también como

# Words that fit any subject. They weigh little, and without another word they select no agent.
[weak]
write make create creates creation creator add fix change update build built run start stop go show give take set put implement develop develops generate handle improve check
look find try turn keep move open close read print call check test do execute prepare finish continue wait begin repeat explain describe answer
question new old small big simple complex short long fast quick better best bad wrong right first last next second file files folder project code
program system feature issue problem expert specialist engineer developer specialized tool practice provide support everything version example
world people person man woman child friend life year month week day today tomorrow yesterday morning evening night hour minute moment time clock
date age place part side hand head house home room kind lot number name word line end point case reason story fact idea history joke poem song weather
city country capital water air food beautiful
schreibe schreiben erstelle erstellen mache machen baue bauen ändere ändern füge hinzufügen starte starten stoppe zeige zeigen gib geben nimm nehmen
setze lauf laufen führe ausführen aktualisiere aktualisieren behebe beheben repariere verbessere prüfe prüfen suche suchen finde finden teste testen
öffne schließe lies lesen erkläre erklären beschreibe beantworte frage antwort neu neue neuer neues neuen alt alte klein groß einfach schnell besser
richtig falsch erste letzte nächste datei dateien ordner projekt programm problem aufgabe zeit uhr tag jahr woche monat heute morgen gestern abend
nacht stunde welt mensch leute freund leben name wort ende teil seite haus ort grund geschichte witz gedicht lied wetter stadt land hauptstadt nummer art spät
écris écrire crée créer fabrique ajoute ajouter corrige corriger change changer modifie modifier construis lance lancer exécute arrête montre montrer
donne donner prends mets mettre vérifie vérifier teste tester cherche chercher trouve trouver explique expliquer réponds question réponse nouveau
nouvelle vieux petit petite grand grande simple rapide meilleur premier dernier prochain fichier dossier projet programme problème tâche temps heure
jour année an mois semaine aujourd hui demain hier matin soir nuit monde gens personne homme femme enfant ami vie nom mot fin partie côté maison lieu
raison histoire blague poème chanson ville pays capitale numéro
今天 明天 昨天 现在 时间 几点 天气 世界 什么 怎么 多少 哪里 可以 一个 一份 一下 这个 那个 这份 我们 你们 创建 建一 写一 帮我 给我 新的 检查 修改 添加 生成 运行 测试 文件 名字 问题 笑话
今日 明日 昨日 時間 何時 天気 世界 作成 確認 追加 実行 修正 変更 名前 問題 新し 冗談 何曜 曜日

# Verbs that ask for something to be made, as they are written in requests.
[make]
write create make build add fix change implement develop generate
schreibe schreib schreiben erstelle erstellen programmiere programmieren entwickle entwickeln baue erzeuge behebe ändere
écris écrire rédige crée créer fais développe développer programme génère corrige ajoute
写 创建 编写 开发 生成 实现 修改 修复 新建
書 作 開発 実装 修正 追加

# Words for a program, in requests.
[program]
program script python javascript typescript golang rust java kotlin swift ruby php perl programm skript programme

# The same for code, of which a request may be about any part.
[code]
code quelltext quellcode 代码

# Words of descriptions whose subject is programs of any kind, each on a line, as they are written.
[maker]
fullstack
full stack
programming
programmer
programmers
coding
coder
write code
writes code
writing code
schreibt code
write programs
writes programs
run programs
runs programs
write scripts
writes scripts
run scripts
runs scripts
schreibt programme
schreibt skripte
software engineer
software engineering
software developer
software development
application development
programmierung
programmieren
softwareentwicklung
softwareentwickler
software entwickeln
programmation
développement logiciel
全栈
编程
软件开发
フルスタック
プログラミング
ソフトウェア開発

# The first word of a line also stands for the others, in requests and descriptions.
[same]
python py
javascript js
typescript ts
go golang
postgresql postgres
database db dbs
documentation docs doc
kubernetes k8s

# Endings of file names, and what they say. With "program", the file is one.
[file]
py python program
ipynb python notebook
js javascript program
mjs javascript program
ts typescript program
jsx javascript react program
tsx typescript react program
go golang program
rs rust program
rb ruby program
php php program
pl perl program
java java program
kt kotlin program
swift swift program
c c program
h c program
cc c++ program
cpp c++ program
cs c# program
sh shell program
bash bash program
sql sql database
css css
html html
md documentation
rst documentation
tf terraform
txt
csv csv
json json
yaml yaml
yml yaml
toml toml
xml xml
pdf pdf
log log
`
