// From a question of an agent to the words and buttons it is shown with. Pure.
//
// What is asked for was written by whoever asks: it is shown as it is and never
// believed. What a button does is read off what the server says can be answered.

import { span } from '../shell/format.js';
import { reveal } from '../shell/text.js';

/** @typedef {import('../shell/api.js').Asked} Asked */
/** @typedef {{id: string, kind: string, label: string, allow: boolean | null}} Choice allow: null where its kind does not tell */

/** Longest call that is shown, in UTF-16 units; the server keeps less. */
const CALL_SHOWN_MAX = 12_000;
const LINES_SHOWN_MAX = 200;

/** Tools in our words: what is done with them. @type {Record<string, string>} */
const DOES = Object.assign(Object.create(null), {
  Bash: 'wants to run a command', Write: 'wants to write a file', Edit: 'wants to change a file', MultiEdit: 'wants to change a file', NotebookEdit: 'wants to change a notebook',
  Read: 'wants to read a file', Glob: 'wants to look for files', Grep: 'wants to search in files', WebFetch: 'wants to fetch something from the network', WebSearch: 'wants to search the network',
});

/** What somebody wants, after his name. @param {Asked} q */
export function wants(q) {
  if (q.kind === 'question') return 'asks you';
  if (q.kind === 'resume') return 'would go on under other conditions';
  const tool = String(q.tool ?? '');
  if (DOES[tool]) return DOES[tool];
  const [, server, of] = /^mcp__(.+?)__(.+)$/.exec(tool) ?? [];
  if (of) return `wants to use ${reveal(of.slice(0, 80))} of ${reveal(server.slice(0, 80))}`;
  return tool ? `wants to use ${reveal(tool.slice(0, 80))}` : 'wants to do something';
}

/** Several lines of foreign words: each made safe, and no more of them than fit. @param {unknown} value */
export function block(value) {
  const text = typeof value === 'string' ? value : value === undefined || value === null ? '' : JSON.stringify(value, null, 2);
  const lines = text.slice(0, CALL_SHOWN_MAX).split('\n');
  const left = lines.length - LINES_SHOWN_MAX;
  const shown = lines.slice(0, LINES_SHOWN_MAX).map((l) => reveal(l.replace(/\t/g, '  '))).join('\n');
  if (left > 0) return `${shown}\n\u2026 and ${left} more lines, not shown`;
  return text.length > CALL_SHOWN_MAX ? `${shown}\u2026 cut here` : shown;
}

/** The arguments that say what a tool does, first. */
const CHIEF = ['command', 'file_path', 'path', 'notebook_path', 'url', 'query', 'pattern'];

/** What a file gets, the first that is there: of a change the places that are changed. */
const WRITTEN = ['diff', 'new_string', 'new_source', 'patchText', 'content'];

/**
 * What a tool is called with: the argument that matters most and what it would write as they are, and
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

/** What happens when nobody answers, and when. @param {Asked} q @param {number} nowMs @returns {string} */
export function untilWhen(q, nowMs) {
  const at = q.expires_at ? Date.parse(q.expires_at) : NaN;
  if (!Number.isFinite(at)) return 'waits until somebody answers';
  const then = q.kind === 'permission' ? (q.otherwise === 'allow' ? 'is allowed' : 'is denied') : q.otherwise ? `is answered with \u201c${reveal(q.otherwise.slice(0, 60))}\u201d` : 'goes on without an answer';
  return at > nowMs ? `${then} in ${span(at - nowMs)} if nobody answers` : `${then} now: nobody answered`;
}

/** Can a plain yes be told? Who asks which of several things it shall be has no answer that is only a yes. @param {Asked} q */
export const maySayYes = (q) => (q.options ?? []).some((o) => o.kind === 'allow_once' || o.kind === 'allow_always');

/** The kinds that the plain buttons stand for. @type {Record<string, boolean>} */
const PLAIN = Object.assign(Object.create(null), { allow_once: true, allow_always: true, reject_once: false, reject_always: false });

/** @param {string} kind */
const says = (kind) => (kind.startsWith('allow') ? true : kind.startsWith('reject') ? false : null);

/**
 * The answers that the plain buttons do not stand for: of a permission those of another kind, and
 * where several are of one kind, all of that kind; else every one.
 * @param {Asked} q @returns {Choice[]}
 */
export function choices(q) {
  const all = (q.options ?? []).map((o) => ({ id: String(o.id), kind: String(o.kind ?? ''), label: String(o.label || o.id), allow: says(String(o.kind ?? '')) }));
  if (q.kind !== 'permission') return all;
  return all.filter((o) => !(o.kind in PLAIN) || all.filter((other) => other.kind === o.kind).length > 1);
}

/** What an agent waits for a person with, beside its name. @param {import('../shell/api.js').Agent} a */
export function asksOf(a) {
  const words = a.asks_what || `${a.asks} questions`;
  return words.startsWith(`${a.name} `) ? words.slice(a.name.length + 1) : `asks: ${words}`;
}

/** Until when a provider takes no more; NaN where it does. @param {import('../shell/api.js').Agent} a @param {number} nowMs */
export function limitedUntil(a, nowMs) {
  const at = a.limited_until ? Date.parse(a.limited_until) : NaN;
  return at > nowMs ? at : NaN;
}
