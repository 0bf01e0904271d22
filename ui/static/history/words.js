// A change of the journal in plain words. Pure. A toggle shows the words of the tables.

import { plain } from '../shell/text.js';
import { CHANGE_WORDS } from './wordtable.js';

/** @typedef {import('../shell/api.js').Change} Change */

/** The name after the machine. @param {string} entity */
const nameIn = (entity) => plain(entity.slice(entity.indexOf('/') + 1), 80);

/** What a program says about its provider, with its own words; without a code it answers again. @param {{code?: string, why?: string}} p */
export function providerWords(p) {
  const known = CHANGE_WORDS.provider, code = p.code ?? '';
  return (Object.hasOwn(known, code) ? known[code] : known.unavailable) + (p.why ? `: ${plain(p.why, 120)}` : '');
}

/** What a change did, without its time and its subject. @param {Change} ch */
export function changeWords(ch) {
  if (ch.data?.used?.provider) return `session ${plain(ch.data.used.session ?? '', 60)}: ${providerWords(ch.data.used.provider)}`;
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

/** Events that only prepare or confirm another one, by the machine that a change names. @type {Record<string, string[]>} */
const DETAILS = {
  control: ['due_continuous', 'due_run_once', 'due_run_cleanup', 'file_found', 'file_seen', 'file_missing'],
  session: ['opened', 'told', 'named', 'token_given', 'tell_given', 'claimed', 'request_dropped'],
  run: ['gates_read', 'settings_given'],
  workflow: ['run_started', 'when_true', 'items_found', 'until_holds', 'target_done'],
  crew: ['listed', 'lead_heard', 'lead_told', 'reported', 'reported_part'],
  turn: ['configured', 'connected', 'handed', 'handed_on', 'got_answer'],
  notice: ['delivered'],
};

/** Is the change one that a person need not read to know what happened? @param {Change} ch */
export const isDetail = (ch) => (Object.hasOwn(DETAILS, ch.machine) && DETAILS[ch.machine].includes(ch.trigger))
  || (ch.machine === 'session' && ch.entity.startsWith('run/')); // a session of a step: the step says the same

/** Who or what a change is about; empty: the team. @param {Change} ch */
export const subjectOf = (ch) => (ch.entity === 'team/team' ? '' : nameIn(ch.entity));

/** The page of what a change is about; empty: it has none. @param {Change} ch */
export function pageOf(ch) {
  const [kind, ...names] = ch.entity.split('/').map(encodeURIComponent);
  switch (kind) {
    case 'control': case 'session': return names.length === 1 ? `#/agents/${names[0]}/history` : '';
    case 'run': case 'step': return `#/runs/${names.join('/')}`;
    case 'channel': case 'turn': return `#/channels/${names[0]}`;
    default: return '';
  }
}

/** The history of the whole team in a time. @param {string} period */
export const teamLink = (period) => `#/history${period && `/${encodeURIComponent(period)}`}`;
