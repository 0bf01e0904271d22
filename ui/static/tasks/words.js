// Turns tasks into text, and sorts them into the columns of the board. Pure.

import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').TaskView} TaskView */
/** @typedef {import('../shell/api.js').RunView} RunView */

/** @type {Record<string, import('../runs/words.js').Look>} */
const LOOKS = {
  queued: { label: 'queued', look: 'pending', mark: '\u25cb' },
  blocked: { label: 'blocked', look: 'pending', mark: '\u2016' },
  working: { label: 'working', look: 'live', mark: '\u25b6' },
  checking: { label: 'checking', look: 'live', mark: '\u25b6' },
  review: { label: 'review', look: 'live', mark: '\u25b6' },
  needs_you: { label: 'needs you', look: 'wait', mark: '?' },
  landing: { label: 'landing', look: 'live', mark: '\u2193' },
  pr_open: { label: 'pr open', look: 'live', mark: '\u2197' },
  done: { label: 'done', look: 'ok', mark: '\u2713' },
  failed: { label: 'failed', look: 'failed', mark: '\u2715' },
  dropped: { label: 'dropped', look: 'cut', mark: '\u2013' },
};

/** @param {string} status @returns {import('../runs/words.js').Look} */
export const taskLook = (status) => LOOKS[status] ?? { label: status.replace(/_/g, ' '), look: 'pending', mark: '\u00b7' };

/** @typedef {{key: string, title: string, of: string[], empty: string}} Column */
/** What needs a person comes first. @type {Column[]} */
export const COLUMNS = [
  { key: 'you', title: 'Needs you', of: ['needs_you', 'failed'], empty: 'Nothing waits for you' },
  { key: 'queued', title: 'Queued', of: ['queued', 'blocked'], empty: 'No task' },
  { key: 'working', title: 'Working', of: ['working'], empty: 'No task' },
  { key: 'checking', title: 'Checking', of: ['checking', 'review'], empty: 'No task' },
  { key: 'landing', title: 'Landing', of: ['landing', 'pr_open'], empty: 'No task' },
  { key: 'done', title: 'Done', of: ['done', 'dropped'], empty: 'No task' },
];

/** Tasks by column; the newest change comes first, and in "Needs you" the longest wait. @param {RunView[]} runs @returns {RunView[][]} */
export function sorted(runs) {
  const known = new Set(COLUMNS.flatMap((c) => c.of));
  return COLUMNS.map((c, i) => {
    const list = runs.filter((r) => r.task && (c.of.includes(r.task.status) || (i === 0 && !known.has(r.task.status))));
    return list.sort((a, b) => (c.key === 'you' ? 1 : -1) * (Date.parse(a.updated_at) - Date.parse(b.updated_at)));
  });
}

/** Does the task still change? @param {string} status */
export const isLive = (status) => ['queued', 'blocked', 'working', 'checking', 'review'].includes(status);

/** What happens on approval. @param {string} land @param {string} base */
export function landing(land, base) {
  if (land === 'pr') return `opens a pull request to ${base}`;
  if (land === 'merge') return `merges it into ${base}`;
  if (land === 'rebase') return `rebases its commits onto ${base}`;
  return `squashes it into one commit on ${base}`;
}

/** What the checks said, in a sentence. @param {import('../shell/api.js').TaskCheck[]} checks */
export function checked(checks) {
  const passed = checks.filter((k) => k.state === 'passed').length;
  if (checks.length === 0) return 'No checks are configured.';
  if (passed === checks.length) return passed === 1 ? 'The check has passed.' : `All ${passed} checks have passed.`;
  return `${passed} of ${checks.length} checks have passed.`;
}

/** How far the server's limits reach, in words. @param {number} n @param {string} one @param {string} many */
export const some = (n, one, many) => `${n.toLocaleString('en-GB')} ${n === 1 ? one : many}`;

/** @param {import('../shell/api.js').TaskFile} f @returns {string[]} what happened to the file besides its lines */
export function fileNotes(f) {
  const notes = f.governing ? ['decides what runs'] : [];
  if (f.status !== 'modified') notes.push(f.status === 'added' ? 'new' : f.status);
  if (f.binary) notes.push('binary');
  if (f.old_mode && f.new_mode) notes.push(`${f.old_mode} \u2192 ${f.new_mode}`);
  else if (f.new_mode) notes.push(f.new_mode);
  return notes;
}

/** The place of a comment, as a key. @param {string} file @param {number} line @param {boolean} old */
export const placeOf = (file, line, old) => `${old ? 'old' : 'new'} ${line} ${file}`;

/** Does the next request send a comment? @param {import('../shell/api.js').TaskComment} c */
export const isNew = (c) => !c.sent && c.state !== 'resolved';

/** Whose words a comment has, and how it stands. @param {import('../shell/api.js').TaskComment} c */
export function commentState(c) {
  const round = c.round ? `round ${c.round}` : 'You';
  if (isNew(c)) return `${round}, not sent`;
  return `${round}, ${c.state === 'changed' ? 'its line has changed since' : c.state ?? 'open'}`;
}

/** Why an approval of what is shown is not what a person wants; empty: it may be. @param {import('../shell/api.js').TaskView} t */
export function nothingNew(t) {
  if (!t.asked) return '';
  if (t.files_changed === 0) return '0 files changed: there is nothing to land.';
  return t.asked.unchanged ? 'Nothing changed since your request.' : '';
}

/** Another open task that changes the same files. @param {import('../shell/api.js').TaskOverlap} o */
export function overlapping(o) {
  const more = o.more_files ? ` and ${o.more_files} more` : '';
  return `${plain(o.id, 48)} (${taskLook(o.status).label}) changes ${(o.files ?? []).map((f) => plain(f, 160)).join(', ')}${more}, too`;
}

/** What is said of a check that ran with the base's version of the files that decide what runs. */
export const BASES = 'with the base\u2019s files';

/** Does it wait for a person because its landing met a conflict, or a check that failed on the merged files? @param {TaskView} t */
export const unlanded = (t) => Boolean(t.asked) && ['conflict', 'checks'].includes(t.landing?.failed ?? '');

/** Why a person is asked about a task once more, and what can be done about it. @param {TaskView} t */
export function askedAgain(t) {
  const why = plain(t.why ?? '', 600);
  if (!unlanded(t)) return `Shown to you again: ${why}`;
  return `It ${why}. Send it back to ${plain(t.agent, 100)} with the newest ${plain(t.base, 100)}, or resolve it by hand: fairlead checkout ${plain(t.id, 48)}`;
}

/** Where a person works on it. @param {TaskView} t */
export const checkedOut = (t) => `Checked out in ${plain(t.checkout ?? '', 600)}. Commit there, then run: fairlead checkout ${plain(t.id, 48)} --done`;
