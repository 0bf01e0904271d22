// From what a session holds to words: who is in charge, what a state may do, how an input was
// ranked, and a dialogue folded into sections. Pure.

import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').DispatchRow} Row */
/** @typedef {import('../shell/api.js').DispatchLine} Line */
/** @typedef {import('../runs/words.js').Look} Look */

/** Longest heading of a section, in UTF-16 units. */
const TITLE_MAX = 200;

/** Who carries out what a session decides. @type {Record<string, string>} */
export const HOSTS = {
  none: 'people and programs say what happens', claude: 'Claude Code, by its hooks', fairlead: 'agents of fairlead.yaml do the work',
};

/** Where an agent goes when it is done. @type {Record<string, string>} */
export const MODES = {
  orchestrator: 'an agent that is done reports back to MAIN', interactive: 'an agent may ask another one for help', response: 'there is no MAIN: messages of an inbox go to agents',
};

/** A state as people see it: FULLSTACK_ENGINEER. @param {string} state */
export const display = (state) => plain(state, 120).toUpperCase().replaceAll('-', '_');

/** @param {Row} s */
export const isOpen = (s) => s.phase !== 'closed' && !s.fault;

/** How a session stands, in a word. @param {Row} s @returns {Look} */
export function sessionLook(s) {
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

/** May something be said to it from here? Empty where it may; else why not. @param {Row} s */
export function mute(s) {
  if (s.phase === 'closed') return 'This session is closed: nothing is enforced any more.';
  if (s.mode === 'response') return 'In mode response nobody is talked to: a message is a file in the folder inbox.';
  if (s.host === 'claude') return 'What is said here is said in Claude Code; this page shows what comes of it.';
  return '';
}

/** The last time that another state came, and what for. @param {Line[]} lines the oldest first @returns {Line | undefined} */
export const cameBy = (lines) => lines.findLast((l) => l.from !== l.to);

/** @type {[keyof import('../shell/api.js').Permissions, string, boolean][]} */
export const PERMISSIONS = [['can_write', 'Can write', true], ['cannot_write', 'Cannot write', false], ['can_execute', 'Can execute', true], ['cannot_execute', 'Cannot execute', false]];

/** What an entry of the permissions means, where it is more than itself. @param {string} entry */
export const permissionWords = (entry) => (entry === '*' ? 'everything (*)' : plain(entry, 80));

/** Why nobody, or who: in one sentence, where the server has none. @param {import('../shell/api.js').Ranking} r */
export const rankingWords = (r) => plain(r.reason, 400) || (r.best ? `${plain(r.best, 80)} fits best` : 'Nobody\u2019s description fits; MAIN keeps it.');

/** How long a bar is, in percent: the best score, or the threshold where that is higher, is all of it. @param {number} score @param {import('../shell/api.js').Ranking} r */
export function share(score, r) {
  const most = Math.max(r.threshold || 0, ...(r.scores ?? []).map((c) => c.score || 0));
  return most > 0 ? Math.max(0, Math.min(100, (score / most) * 100)) : 0;
}

/** @typedef {{at: string, title: string, text: string, move: boolean}} Section at: of a part that the record timed; move: another state came */

/** A heading as the record writes it, and any other one. Only the first begins another speaker's part. */
const TIMED = /^## (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\s(.*)$/, TITLED = /^#{1,6}\s+(\S.*)$/;

/**
 * A dialogue as its sections: a heading, and what stands under it. Whatever it says stays text.
 * A timed heading counts wherever it stands: who forgets to close a fence does not swallow the
 * others.
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
