package sqlite

import (
	"database/sql/driver"
	"fmt"

	"github.com/fairlead-dev/fairlead/journal"
)

// namesKept bounds each map of a dictionary: names beyond it are looked up in the
// file again. At some 100 bytes each this is a few megabytes.
const namesKept = 1 << 15

// phrase is everything about a change that comes again and again.
type phrase struct {
	machine, rule, was, became, cue string
	actor                           journal.Actor
}

func phraseOf(c *journal.Change) phrase {
	return phrase{c.Machine, c.Row, c.From, c.To, c.Trigger, c.Actor}
}

// dictionary is what a connection remembers of the tables entity and phrase. Rows
// there are never altered, so what was committed once may be remembered for good. What
// a failed transaction put in must be forgotten: see forget.
type dictionary struct {
	entities  map[int64]string
	entityIDs map[string]int64
	phrases   map[int64]phrase
	phraseIDs map[phrase]int64
}

func (d *dictionary) forget() { *d = dictionary{} }

// learnID remembers the id of an entity. A connection that writes asks for ids, one that reads for names, so each
// remembers one direction only.
func (d *dictionary) learnID(id int64, name string) {
	if d.entityIDs == nil || len(d.entityIDs) >= namesKept {
		d.entityIDs = map[string]int64{}
	}
	d.entityIDs[name] = id
}

func (d *dictionary) learnPhrase(id int64, p phrase) {
	if d.phrases == nil || len(d.phrases) >= namesKept {
		d.phrases, d.phraseIDs = map[int64]phrase{}, map[phrase]int64{}
	}
	d.phrases[id] = p
	d.phraseIDs[p] = id
}

// entity gives the name of an id; found is false where the file has none.
func (c *conn) entity(id int64) (name string, found bool, err error) {
	if name, found = c.names.entities[id]; found {
		return name, true, nil
	}
	name, err = c.word("SELECT name FROM entity WHERE id = ?1", id)
	if err != nil || name == "" {
		return "", false, err
	}
	if c.names.entities == nil || len(c.names.entities) >= namesKept {
		c.names.entities = map[int64]string{}
	}
	c.names.entities[id] = name
	return name, true, nil
}

// entityID gives the id of a name, 0 where the file has none yet.
func (c *conn) entityID(name string) (int64, error) {
	if id, ok := c.names.entityIDs[name]; ok {
		return id, nil
	}
	id, ok, err := c.number("SELECT id FROM entity WHERE name = ?1", name)
	if err != nil || !ok {
		return 0, err
	}
	c.names.learnID(id, name)
	return id, nil
}

// makeEntity is entityID which adds what is missing, within a transaction.
func (c *conn) makeEntity(name string) (int64, error) {
	if id, err := c.entityID(name); id != 0 || err != nil {
		return id, err
	}
	id, ok, err := c.number("INSERT INTO entity (name) VALUES (?1) RETURNING id", name)
	if err != nil || !ok {
		return 0, fmt.Errorf("add entity: %w", err)
	}
	c.names.learnID(id, name)
	return id, nil
}

const phraseColumns = "id, machine, rule, was, became, cue, actor_kind, actor_id"

// phrase gives the phrase of an id; found is false where the file has none.
func (c *conn) phrase(id int64) (p phrase, found bool, err error) {
	if p, found = c.names.phrases[id]; found {
		return p, true, nil
	}
	err = c.query(c.learnRow, "SELECT "+phraseColumns+" FROM phrase WHERE id = ?1", id)
	p, found = c.names.phrases[id]
	return p, found, err
}

// makePhrase gives the id of a phrase, and adds it where it is not remembered.
func (c *conn) makePhrase(p phrase) (int64, error) {
	if id, ok := c.names.phraseIDs[p]; ok {
		return id, nil
	}
	if c.names.phrases == nil { // a new connection: remember the last ones, or each start would add them all again
		err := c.query(c.learnRow, "SELECT "+phraseColumns+" FROM phrase ORDER BY id DESC LIMIT ?1", int64(namesKept/2))
		if err != nil {
			return 0, fmt.Errorf("read phrases: %w", err)
		}
		if id, ok := c.names.phraseIDs[p]; ok {
			return id, nil
		}
	}
	id, ok, err := c.number(`INSERT INTO phrase (machine, rule, was, became, cue, actor_kind, actor_id)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id`, p.machine, p.rule, p.was, p.became, p.cue, p.actor.Kind, p.actor.ID)
	if err != nil || !ok {
		return 0, fmt.Errorf("add phrase: %w", err)
	}
	c.names.learnPhrase(id, p)
	return id, nil
}

func (c *conn) learnRow(row []driver.Value) (bool, error) {
	id, ok := row[0].(int64)
	if !ok {
		return true, nil
	}
	var s [7]string
	for i := range s {
		s[i], _ = row[i+1].(string)
	}
	c.names.learnPhrase(id, phrase{s[0], s[1], s[2], s[3], s[4], journal.Actor{Kind: s[5], ID: s[6]}})
	return true, nil
}
