// Turns a question of an agent into text and buttons. Pure.
//
// An agent wrote the question: the page shows it unchanged and does not trust it. What a button
// does depends on the options that the server offers.

import { span } from '../shell/format.js';
import { plain, reveal } from '../shell/text.js';

/** @typedef {import('../shell/api.js').Asked} Asked */
/** @typedef {{id: string, kind: string, label: string, allow: boolean | null}} Choice allow: null where its kind does not tell */

/** Longest call shown, in UTF-16 units; the server keeps less. */
const CALL_SHOWN_MAX = 12_000;
const LINES_SHOWN_MAX = 200;
/** Names listed of what waits. */
const HOLDS_MAX = 4;

/** What each tool does. @type {Record<string, string>} */
const DOES = Object.assign(Object.create(null), {
  Bash: 'wants to run a command', Write: 'wants to write a file', Edit: 'wants to change a file', MultiEdit: 'wants to change a file', NotebookEdit: 'wants to change a notebook',
  Read: 'wants to read a file', Glob: 'wants to look for files', Grep: 'wants to search in files', WebFetch: 'wants to fetch something from the network', WebSearch: 'wants to search the network', Network: 'wants to reach a host of the network',
});

/** What kind of thing needs a person. @param {import('../shell/api.js').InboxItem} i @returns {{label: string, look: string, mark: string}} */
export function needLook(i) {
  switch (i.kind) {
    case 'step': return { label: i.task && !i.input_schema ? 'Review' : 'Approval', look: 'wait', mark: '?' };
    case 'permission': return { label: 'Permission', look: 'wait', mark: '?' };
    case 'failed': return { label: 'Gave up', look: 'failed', mark: '\u2715' };
    case 'run': return { label: i.task?.failed_step === 'land' ? 'Did not land' : 'Failed', look: 'failed', mark: '\u2715' };
    case 'login': return { label: 'Login', look: 'failed', mark: '!' };
    case 'billing': return { label: 'Billing', look: 'failed', mark: '!' };
    case 'limit': return { label: 'Limit', look: 'wait', mark: '\u2016' };
    case 'config': return { label: 'Configuration', look: 'wait', mark: '?' };
    case 'branch': return { label: 'Branch', look: 'wait', mark: '?' };
    case 'fetch': return { label: 'Fetch', look: 'failed', mark: '!' };
    default: return { label: 'Question', look: 'wait', mark: '?' };
  }
}

/** What waits for it, in words; empty: nothing else. @param {import('../shell/api.js').InboxItem} i */
export function holdsUp(i) {
  const list = i.blocks ?? [];
  if (list.length === 0) return '';
  const names = list.slice(0, HOLDS_MAX).map((n) => reveal(String(n).slice(0, 64)));
  const more = list.length - names.length;
  return `${i.kind === 'limit' ? 'stops' : 'holds up'} ${more > 0 ? `${names.join(', ')} and ${more} more` : names.length > 1 ? `${names.slice(0, -1).join(', ')} and ${names[names.length - 1]}` : names[0]}`;
}

/** What happens on a yes and on a no. @param {import('../shell/api.js').InboxItem} i */
export function outcomes(i) {
  const then = (i.then ?? []).slice(0, HOLDS_MAX).map((n) => reveal(n.slice(0, 64)));
  return {
    yes: then.length > 0 ? `${then.join(', ')} ${then.length === 1 ? 'begins' : 'begin'}` : 'the run completes',
    no: i.back_to ? `the run goes back to ${reveal(i.back_to.slice(0, 64))}` : 'the step fails, and the run with it',
  };
}

/** The last lines of a text of several lines. @param {string} text @param {number} most */
export function lastLines(text, most) {
  const lines = text.replace(/\s+$/, '').split('\n');
  return lines.slice(-most).map((l) => reveal(l.slice(0, CALL_SHOWN_MAX))).join('\n');
}

/** What an agent wants; follows its name. @param {Asked} q */
export function wants(q) {
  if (q.kind === 'question') return 'asks you';
  if (q.kind === 'resume') return 'would continue under different conditions';
  if (q.kind === 'host_lost') return 'waits: the host of its step was lost';
  const tool = String(q.tool ?? '');
  if (DOES[tool]) return DOES[tool];
  const [, server, of] = /^mcp__(.+?)__(.+)$/.exec(tool) ?? [];
  if (of) return `wants to use ${reveal(of.slice(0, 80))} of ${reveal(server.slice(0, 80))}`;
  return tool ? `wants to use ${reveal(tool.slice(0, 80))}` : 'wants to do something';
}

/** Several lines of an agent's text, with control characters made visible and a length limit. @param {unknown} value */
export function block(value) {
  const text = typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value, null, 2);
  const lines = text.slice(0, CALL_SHOWN_MAX).split('\n');
  const left = lines.length - LINES_SHOWN_MAX;
  const shown = lines.slice(0, LINES_SHOWN_MAX).map((l) => reveal(l.replace(/\t/g, '  '))).join('\n');
  if (left > 0) return `${shown}\n\u2026 and ${left} more lines, not shown`;
  return text.length > CALL_SHOWN_MAX ? `${shown}\u2026 cut here` : shown;
}

/** The arguments that say most about a call come first. */
const CHIEF = ['command', 'file_path', 'path', 'notebook_path', 'url', 'query', 'pattern'];

/** The arguments that hold new content of a file. */
const WRITTEN = ['diff', 'new_string', 'new_source', 'patchText', 'content'];

/**
 * The arguments of a call: the most important one and the content that it would write in full, and
 * the others beside them.
 * @param {unknown} call arguments as JSON, or a text
 * @returns {{chief: string, written: string, rest: string}}
 */
export function callOf(call) {
  if (typeof call !== 'string' || call.trim() === '') return { chief: '', written: '', rest: '' };
  /** @type {any} */
  let args;
  try { args = JSON.parse(call); } catch { return { chief: block(call), written: '', rest: '' }; }
  if (args === null || typeof args !== 'object' || Array.isArray(args)) return { chief: block(call), written: '', rest: '' };
  const first = (/** @type {string[]} */ names) => names.find((k) => Object.hasOwn(args, k) && typeof args[k] === 'string' && args[k] !== '');
  const chief = first(CHIEF), written = first(WRITTEN);
  const rest = Object.fromEntries(Object.entries(args).filter(([k]) => k !== chief && k !== written));
  return { chief: chief ? block(args[chief]) : '', written: written ? block(args[written]) : '', rest: Object.keys(rest).length === 0 ? '' : block(rest) };
}

/** What happens without an answer, and when. @param {Asked} q @param {number} nowMs @returns {string} */
export function untilWhen(q, nowMs) {
  const at = q.expires_at ? Date.parse(q.expires_at) : NaN;
  if (!Number.isFinite(at)) return 'waits until a person answers';
  const then = q.kind === 'permission' ? (q.otherwise === 'allow' ? 'is allowed' : 'is denied') : q.otherwise ? `is answered with \u201c${reveal(q.otherwise.slice(0, 60))}\u201d` : 'goes on without an answer';
  return at > nowMs ? `${then} in ${span(at - nowMs)}${then.endsWith('without an answer') ? '' : ' without an answer'}` : `${then} now: no answer came`;
}

/** Does a plain yes answer the question? Not if it asks to choose between several things. @param {Asked} q */
export const maySayYes = (q) => (q.options ?? []).some((o) => o.kind === 'allow_once' || o.kind === 'allow_always');

/** The kinds of options that the plain buttons cover. @type {Record<string, boolean>} */
const PLAIN = Object.assign(Object.create(null), { allow_once: true, allow_always: true, reject_once: false, reject_always: false });

/** @param {string} kind */
const says = (kind) => (kind.startsWith('allow') ? true : kind.startsWith('reject') ? false : null);

/**
 * The options that need a button of their own: for a permission, options of another kind and all
 * options of a kind that occurs more than once; for other questions, every option.
 * @param {Asked} q @returns {Choice[]}
 */
export function choices(q) {
  const all = (q.options ?? []).map((o) => ({ id: String(o.id), kind: String(o.kind ?? ''), label: String(o.label || o.id), allow: says(String(o.kind ?? '')) }));
  if (q.kind !== 'permission') return all;
  return all.filter((o) => !(o.kind in PLAIN) || all.filter((other) => other.kind === o.kind).length > 1);
}

/** What an agent waits for; shown next to its name. @param {import('../shell/api.js').Agent} a */
export function asksOf(a) {
  const words = a.asks_what || `${a.asks} questions`;
  return words.startsWith(`${a.name} `) ? words.slice(a.name.length + 1) : `asks: ${words}`;
}

/** When the provider's rate limit ends, in ms since 1970; NaN without a limit. @param {import('../shell/api.js').Agent} a @param {number} nowMs */
export function limitedUntil(a, nowMs) {
  const at = a.limited_until ? Date.parse(a.limited_until) : NaN;
  return at > nowMs ? at : NaN;
}

/** How a question ended. @param {import('../shell/api.js').Asked & {state?: string, allow?: boolean, option?: string, text?: string, by?: string}} q */
export function answerWords(q) {
  if (q.state === 'withdrawn') return 'It was withdrawn without an answer.';
  if (q.state === 'open') return 'It has no answer yet.';
  const how = q.kind === 'permission' ? (q.allow ? 'yes' : 'no') : plain(q.option || '', 80);
  return `Answered by ${plain((q.by ?? '').replace(/^human\//, '') || 'a person', 80)}: ${[how, plain(q.text ?? '', 600)].filter(Boolean).join(', ')}`;
}
