// Turns a channel into text: the state of the turn, the state of a message, and a conversation
// as blocks. Pure.

import { plural } from '../shell/format.js';
import { plain, reveal } from '../shell/text.js';

/** @typedef {import('../shell/api.js').Channel} Channel */
/** @typedef {import('../shell/api.js').Entry} Entry */
/** @typedef {import('../shell/api.js').Member} Member */

/** Messages of one speaker within this time form one block. */
const BREATH_MS = 5 * 60_000;
/** Names listed one by one in a line about turns. */
const NAMES_MAX = 6;

/** @type {Record<string, string>} */
const PARKED = {
  quiet: 'Idle until a message arrives', unanswered: 'The agents did not answer; the channel waits for a person', passed: 'All agents passed', rounds: 'The agents have used their rounds; the channel waits for a person',
  nobody: 'No agent is in the rotation', held: 'The team is held', limited: 'The agents that have something to answer are at a limit',
};

/** Why no agent has the turn. @param {Channel} c */
export function parkedWords(c) {
  const open = c.parked === 'nobody' || c.parked === 'held' ? undefined : c.open?.find((m) => m.state !== 'answered' && m.mode !== 'parallel');
  const rest = open ? `; message ${open.n} of ${plain(open.by, 60)} has no answer` : '';
  if (c.parked === 'rounds' && c.rounds_max > 0) return `The agents have used their ${plural(c.rounds_max, 'round')}; it waits for a person${rest}`;
  return (PARKED[c.parked] ?? (plain(c.why || c.parked, 200) || 'No agent has the turn')) + rest;
}

/** @type {Record<string, string>} */
const PARKED_SHORT = { quiet: 'idle', unanswered: 'waits for a person', passed: 'all agents passed', rounds: 'waits for a person', nobody: 'no agent in the rotation', held: 'the team is held', limited: 'at a limit' };

/** The same, short. @param {Channel} c */
export const parkedShort = (c) => PARKED_SHORT[c.parked] ?? parkedWords(c);

/** The state of a channel, as a label and a style. @param {Channel} c @returns {{look: string, mark: string, label: string}} */
export function channelLook(c) {
  if (c.holder && c.state === 'WAITING') return { look: 'wait', mark: '\u2016', label: 'waiting' };
  if (c.holder) return { look: 'live', mark: '\u25b6\ufe0e', label: 'active' };
  if (c.parked === 'unanswered' || c.parked === 'rounds' || c.parked === 'limited' || c.parked === 'nobody') return { look: 'wait', mark: '!', label: 'parked' };
  return { look: 'rest', mark: '\u2013', label: 'parked' };
}

/** @type {Record<string, {name: string, about: string}>} */
export const MODES = {
  inject: { name: 'Inject', about: 'Goes at once to the agent with the turn.' },
  queue: { name: 'Queue', about: 'Waits for the end of the turn; the next agent gets it.' },
  interrupt: { name: 'Interrupt', about: 'Interrupts the turn until you have an answer; then the turn continues.' },
  parallel: { name: 'Parallel', about: 'Goes to all agents at once; their answers need no turn.' },
};

/** The state of a person's message. @type {Record<string, {mark: string, words: string}>} */
export const STATES = {
  queued: { mark: '\u25cb', words: 'queued' },
  delivered: { mark: '\u25d0', words: 'delivered' },
  answered: { mark: '\u2713', words: 'answered' },
  lapsed: { mark: '\u2715', words: 'lapsed: no agent answered in time' },
};

/** The participants in order: the one with the turn, the queue, then the others. @param {Channel} c */
export function rotationOf(c) {
  const members = c.agents ?? [];
  const byName = new Map(members.map((m) => [m.name, m]));
  const holder = c.holder ? byName.get(c.holder) : undefined;
  const queue = (c.queue ?? []).map((n) => byName.get(n)).filter((m) => m !== undefined && m !== holder);
  const inIt = new Set([holder, ...queue]);
  return { holder, queue: /** @type {Member[]} */ (queue), others: members.filter((m) => !inIt.has(m)) };
}

/** The state of a participant that has no turn and is not in the queue. @param {Member} m */
export function memberWords(m) {
  const words = [];
  if (m.disabled) words.push('disabled');
  else if (m.crashed && !m.connected) words.push('crashed');
  else if (!m.connected) words.push('not connected');
  else if (m.state === 'IDLE') words.push(m.crashed ? 'idle since it crashed' : 'idle');
  if (m.owed) words.push('queued when it connects');
  if (m.limit) words.push(`at its limit: ${plain(m.limit, 80)}`);
  return words.join(', ');
}

/** A name in two or three characters: its initials, or a letter and its number. @param {string} name */
export function initials(name) {
  const parts = name.split(/[^\p{L}\p{N}]+/u).filter(Boolean);
  const head = parts[0] ?? '?', tail = parts[parts.length - 1] ?? '?';
  const number = parts.length > 1 ? tail.match(/^0*(\d{1,2})$/)?.[1] : undefined;
  if (number) return ([...head][0] + number).toUpperCase();
  return (parts.length > 1 ? [...head][0] + [...tail][0] : [...head].slice(0, 2).join('')).toUpperCase();
}

// --- a message as pieces ----------------------------------------------------------------

/** @typedef {{code: boolean, text: string}} Piece */

/** Text of several lines with control characters made visible; line breaks and tabs stay. @param {string} text */
export const revealLines = (text) => text.replace(/\r\n/g, '\n').split(/([\n\t])/).map((part) => (part === '\n' || part === '\t' ? part : reveal(part))).join('');

/**
 * A message as text and code, separated by its fences. Everything stays text.
 * @param {string} text @returns {Piece[]}
 */
export function piecesOf(text) {
  /** @type {Piece[]} */
  const pieces = [];
  /** @type {string[]} */
  let lines = [];
  let code = false;
  const close = () => {
    const all = lines.join('\n').replace(/^\n+|\n+$/g, '');
    if (all) pieces.push({ code, text: revealLines(all) });
    lines = [];
  };
  for (const line of text.split('\n')) {
    if (/^\s{0,3}```/.test(line)) { close(); code = !code; } else lines.push(line);
  }
  close();
  return pieces;
}

// --- a conversation as blocks -------------------------------------------------------------

/**
 * @typedef {{type: 'day', key: string, at: string}
 *   | {type: 'words', key: string, kind: string, by: string, turn: number, re: number, at: string, list: Entry[]}
 *   | {type: 'turns', key: string, list: Entry[]}
 *   | {type: 'notice', key: string, entry: Entry}} Block
 */

const SPOKEN = new Set(['human', 'turn', 'aside', 'late']);

/** @param {Extract<Block, {type: 'words'}>} w @param {Entry} e */
const sameBreath = (w, e) => w.kind === e.kind && w.by === (e.by ?? '') && w.turn === (e.turn ?? 0) && w.re === (e.re ?? 0)
  && Date.parse(e.at) - Date.parse(w.list[w.list.length - 1].at) < BREATH_MS;

/**
 * Messages of one speaker in one turn form a block. The transitions between two blocks become one
 * line, after the announcements between them.
 * @param {Entry[]} list @returns {Block[]}
 */
export function blocksOf(list) {
  /** @type {Block[]} */
  const blocks = [];
  /** @type {Entry[]} */
  let moves = [];
  let day = '';
  const fold = () => {
    if (moves.length > 0 && turnLine(moves)) blocks.push({ type: 'turns', key: `t${moves[0].seq}/${moves[0].agent ?? ''}`, list: moves });
    moves = [];
  };
  for (const e of list) {
    if (e.kind === 'moved') { moves.push(e); continue; }
    const on = new Date(e.at).toDateString();
    if (on !== day && Number.isFinite(Date.parse(e.at))) {
      fold();
      if (day || new Date().toDateString() !== on) blocks.push({ type: 'day', key: `d${e.seq}`, at: e.at });
      day = on;
    }
    if (!SPOKEN.has(e.kind)) {
      blocks.push({ type: 'notice', key: `n${e.seq}/${e.kind}`, entry: e });
      continue;
    }
    fold();
    const last = blocks[blocks.length - 1];
    if (last?.type === 'words' && sameBreath(last, e)) last.list.push(e);
    else blocks.push({ type: 'words', key: `w${e.seq}/${e.n ?? 0}`, kind: e.kind, by: e.by ?? '', turn: e.turn ?? 0, re: e.re ?? 0, at: e.at, list: [e] });
  }
  fold();
  return blocks;
}

const HOLDS = new Set(['ACTIVE', 'WAITING']);

/** How a turn ended, where not by being done. @type {Record<string, string>} */
const ENDS = { T9: 'out of time', T11: 'gone', T13: 'waited too long', T14: 'gone', T15: 'wait ended by hand', T16: 'removed', T20: 'disabled', T22: 'passed', T23: 'skipped' };
/** Turns ended by a person. */
const BY_HAND = new Set(['T16', 'T20', 'T23']);
/** @type {Record<string, string>} */
const PAUSES = { T10: 'waits', T12: 'continues', T15: 'sent on', T17: 'stopped for a person' };
/** @type {Record<string, string>} */
const COMES = { T1: 'connected', T2: 'joined', T5: 'left', T3: 'went offline', T6: 'went offline', T18: 'is back', T20: 'disabled', T21: 'enabled' };

/** @param {string[]} list */
const naming = (list) => {
  const names = [...new Set(list)];
  const shown = names.slice(0, NAMES_MAX).map((n) => plain(n, 60));
  return names.length > NAMES_MAX ? `${shown.join(', ')} and ${names.length - NAMES_MAX} more` : shown.join(', ').replace(/, ([^,]*)$/, ' and $1');
};

/**
 * Several transitions as one line: the hand-offs, and other events.
 * @param {Entry[]} list @returns {{turn: string, chain: string[], notes: string[]} | null} null where it tells nothing
 */
export function turnLine(list) {
  /** @type {string[]} */ const chain = [];
  /** @type {string[]} */ const notes = [];
  /** @type {Record<string, string[]>} */ const comes = {};
  /** @type {number[]} */ const turns = [];
  let ended = '';
  for (const e of list) {
    const row = e.row ?? '', who = e.agent ?? '', from = e.from ?? '', to = e.to ?? '';
    if (HOLDS.has(from) && !HOLDS.has(to)) {
      ended = who;
      if (chain.length === 0) chain.push(who);
      if (ENDS[row]) notes.push(`${plain(who, 60)} ${ENDS[row]}${BY_HAND.has(row) && e.by ? ` by ${plain(e.by, 60)}` : ''}`);
      else if (e.text && (row === 'T7' || row === 'T8')) notes.push(`${plain(who, 60)}: ${plain(e.text, 160)}`);
    } else if (from === 'QUEUED' && to === 'ACTIVE') {
      if (chain.length > 0 && ended !== chain[chain.length - 1]) chain.length = 0;
      chain.push(who);
      if (e.turn) turns.push(e.turn);
      ended = '';
    } else if (row === 'T17' && to === 'ACTIVE') notes.push(`${plain(who, 60)} answers first`);
    else if (PAUSES[row] && HOLDS.has(from)) notes.push(`${plain(who, 60)} ${PAUSES[row]}${row === 'T10' && e.text ? `: ${plain(e.text, 160)}` : ''}`);
    else if (COMES[row] && from !== to) (comes[COMES[row]] ??= []).push(who);
  }
  for (const [words, who] of Object.entries(comes)) notes.push(`${naming(who)} ${words}`);
  if (chain.length === 1 && ended === chain[0] && notes.length === 0) notes.push(`${plain(chain[0], 60)} is done`);
  const shown = chain.length === 1 && ended === chain[0] ? [] : chain;
  if (shown.length === 0 && notes.length === 0) return null;
  const turn = turns.length === 0 ? '' : turns.length === 1 ? `turn ${turns[0]}` : `turns ${turns[0]}\u2013${turns[turns.length - 1]}`;
  return { turn, chain: shown, notes };
}
