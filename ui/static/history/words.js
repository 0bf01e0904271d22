// A change of the journal in plain words. Pure. The words of the tables stand behind a toggle.

import { plain } from '../shell/text.js';
import { CHANGE_WORDS } from './wordtable.js';

/** @typedef {import('../shell/api.js').Change} Change */

/** The name after the machine. @param {string} entity */
const nameIn = (entity) => plain(entity.slice(entity.indexOf('/') + 1), 80);

/** What a change did, without its time and its subject. @param {Change} ch */
export function changeWords(ch) {
  const machine = Object.hasOwn(CHANGE_WORDS, ch.machine) ? CHANGE_WORDS[ch.machine] : {};
  const known = Object.hasOwn(machine, ch.trigger) && machine[ch.trigger];
  if (!known) return plain(ch.trigger, 160).replaceAll('_', ' ') + (ch.from === ch.to ? '' : `: ${plain(ch.to, 40)}`);
  const id = plain(ch.data?.session?.id ?? '', 60);
  const outcome = plain(ch.data?.session?.outcome ?? '', 30);
  const more = ch.machine === 'question' ? ch.trigger === 'raised' && plain(ch.data?.question?.question?.what ?? '', 160) : outcome !== ch.trigger && outcome;
  return known.replaceAll('{s}', id ? `session ${id}` : 'the session') + (more ? `: ${more}` : '');
}

/** A change as one line: its subject and what it did. @param {Change} ch */
export const changeLine = (ch) => (ch.entity === 'team/team' ? changeWords(ch) : `${nameIn(ch.entity)}: ${changeWords(ch)}`);

/** Who made a change, as short as possible. @param {Change} ch */
export function changeActor(ch) {
  const { kind = '', id = '' } = ch.actor ?? {};
  if (kind === 'human') return id && id !== 'human' ? plain(id, 40) : 'a person';
  if (kind === 'agent') return `agent ${plain(id, 40)}`;
  return 'Fairlead';
}
