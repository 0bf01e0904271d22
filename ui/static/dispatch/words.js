// Turns a session into text: its state, its permissions, the ranking of an input, and a dialogue
// as sections. Pure.

import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').DispatchRow} Row */
/** @typedef {import('../shell/api.js').DispatchLine} Line */
/** @typedef {import('../runs/words.js').Look} Look */

/** Longest heading of a section, in UTF-16 units. */
const TITLE_MAX = 200;

/** The program that carries out a session's decisions. @type {Record<string, string>} */
export const HOSTS = {
  none: 'people and programs say what happens', claude: 'Claude Code, by its hooks', fairlead: 'agents of fairlead.yaml do the work',
};

/** The state after an agent has finished. @type {Record<string, string>} */
export const MODES = {
  orchestrator: 'an agent that is done reports back to MAIN', interactive: 'an agent may ask another one for help', response: 'there is no MAIN: messages of an inbox go to agents',
};

/** A state as it is displayed: FULLSTACK_ENGINEER. @param {string} state */
export const display = (state) => plain(state, 120).toUpperCase().replaceAll('-', '_');

/** @param {Row} s */
export const isOpen = (s) => s.phase !== 'closed' && !s.fault;

/** The state of a session, in a word. @param {Row} s @returns {Look} */
export function dispatchLook(s) {
  if (s.fault) return { look: 'failed', mark: '\u2715', label: 'cannot be read' };
  switch (s.phase) {
    case 'closed': return { look: 'cut', mark: '\u2013', label: 'closed' };
    case 'ready': return { look: 'rest', mark: '\u25cb', label: 'ready' };
    case 'queue': return { look: 'rest', mark: '\u25cb', label: 'waits for a message' };
    case 'talking': return { look: 'live', mark: '\u25b6\ufe0e', label: 'MAIN has it' };
    case 'working': case 'serving': return { look: 'live', mark: '\u25b6\ufe0e', label: 'at work' };
    default: return { look: 'rest', mark: '\u00b7', label: s.phase };
  }
}

/** Why the page cannot send an input to the session; empty if it can. @param {Row} s */
export function mute(s) {
  if (s.phase === 'closed') return 'This dispatch is closed: permissions are no longer enforced.';
  if (s.mode === 'response') return 'In mode response, inputs are files in the folder inbox.';
  if (s.host === 'claude') return 'Inputs come from Claude Code; this page shows the results.';
  return '';
}

/** The last change of the state. @param {Line[]} lines the oldest first @returns {Line | undefined} */
export const cameBy = (lines) => lines.findLast((l) => l.from !== l.to);

/** @type {[keyof import('../shell/api.js').Permissions, string, boolean][]} */
export const PERMISSIONS = [['can_write', 'Can write', true], ['cannot_write', 'Cannot write', false], ['can_execute', 'Can execute', true], ['cannot_execute', 'Cannot execute', false]];

/** The meaning of an entry of the permissions, if it is not obvious. @param {string} entry */
export const permissionWords = (entry) => (entry === '*' ? 'everything (*)' : plain(entry, 80));

/** The reason for the choice, or for none, in one sentence; used if the server gives none. @param {import('../shell/api.js').Ranking} r */
export const rankingWords = (r) => plain(r.reason, 400) || (r.best ? `${plain(r.best, 80)} fits best` : 'No agent\u2019s description fits; MAIN keeps the input.');

/** The length of a bar in per cent of the best score, or of the threshold if that is higher. @param {number} score @param {import('../shell/api.js').Ranking} r */
export function share(score, r) {
  const most = Math.max(r.threshold || 0, ...(r.scores ?? []).map((c) => c.score || 0));
  return most > 0 ? Math.max(0, Math.min(100, (score / most) * 100)) : 0;
}

/** @typedef {{at: string, title: string, text: string, move: boolean}} Section at: of a part that the record timed; move: another state came */

/** A heading as the session writes it, and any other heading. Only the first begins a new speaker. */
const TIMED = /^## (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s(.*)$/, TITLED = /^#{1,6}\s+(\S.*)$/;

/**
 * A dialogue as sections: a heading and the text below it. Everything stays text. A heading with a
 * time counts everywhere, so that an unclosed fence does not hide the sections after it.
 * @param {string} text @returns {Section[]}
 */
export function sectionsOf(text) {
  /** @type {Section[]} */
  const sections = [];
  let at = '', title = '', fenced = false;
  /** @type {string[]} */
  let lines = [];
  const close = () => {
    const body = lines.join('\n').replace(/^\s*\n|\s+$/g, '');
    if (title || body) sections.push({ at, title, text: body, move: at !== '' && /^\[.* \u2192 .*\]/.test(title) });
    lines = [];
  };
  for (const line of text.split(/\r?\n/)) {
    const short = line.slice(0, TITLE_MAX * 4);
    const timed = TIMED.exec(short);
    const titled = timed || fenced ? null : TITLED.exec(short);
    if (!timed && !titled) {
      if (/^\s{0,3}```/.test(short)) fenced = !fenced;
      lines.push(line);
      continue;
    }
    close();
    fenced = false;
    at = timed ? timed[1] : '';
    title = plain(timed ? timed[2] : titled?.[1], TITLE_MAX);
  }
  close();
  return sections;
}
