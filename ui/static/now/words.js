// What the page Now shows, from what is known of agents and runs. Pure.

import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').Work} Work */
/** @typedef {import('../shell/api.js').RunView} RunView */
/** @typedef {import('../shell/api.js').Agent} Agent */
/** @typedef {import('../shell/api.js').InboxItem} InboxItem */

/** Has the run ended? @param {RunView} r */
const isOver = (r) => r.stage === 'stopped' || ['completed', 'failed', 'cancelled'].includes(r.status);

/**
 * The page in one sentence: whether to act, and what goes on meanwhile.
 * @param {{needs: number, working: number, held: boolean, known: boolean, live: boolean}} n
 */
export function headline({ needs, working, held, known, live }) {
  if (!known) return { act: 'Asking Fairlead\u2026', rest: '' };
  if (!live) return { act: 'Cut off: this is what was known.', rest: '' };
  const act = needs === 0 ? 'Nothing needs you.' : needs === 1 ? '1 thing needs you.' : `${needs} things need you.`;
  const rest = held ? 'The team is held.' : working === 0 ? 'Nothing is running.' : working === 1 ? '1 agent is working.' : `${working} agents are working.`;
  return { act, rest };
}

/** The title of the tab. @param {{needs: number, running: number, look: number, lost: boolean, team: string}} n */
export function tabTitle({ needs, running, look, lost, team }) {
  const parts = [lost && 'cut off', needs > 0 && `${needs === 1 ? '1 needs' : `${needs} need`} you`, look > 0 && `${look} to look at`, `${running} running`].filter(Boolean);
  return `${needs > 0 ? `(${needs}) ` : ''}${parts.join(', ')} \u00b7 ${team}`;
}

/** Sessions and steps that make progress. What waits for a person is in the inbox, what waits for a time is next. @param {Work[]} all */
export const atWork = (all) => all.filter((w) => w.status === 'running' || w.status === 'stopping' || w.status === 'unknown');

/** How many agents are at work; a step without an agent counts as one. @param {Work[]} all */
export const countWork = (all) => new Set(atWork(all).map((w) => w.agent || w.session_id)).size;

/** What a session is for. @param {Work} w */
export function workFor(w) {
  if (w.title) return w.agent ? plain(w.title, 160) : plain(w.step_id, 64);
  if (w.run_id) return `${plain(w.step_id, 64)} of ${plain(w.workflow_name || w.run_id, 80)}`;
  switch (w.purpose) {
    case 'channels': return 'takes part in a channel';
    case 'lead': return 'leads the crew';
    case 'dispatch': return 'works for a dispatch';
    default: return w.says ? plain(w.says, 160) : '';
  }
}

/** @typedef {{key: string, title: string, why: string, at: number, run?: RunView, agent?: string, status: string}} Next */

/**
 * What begins later, and what it waits for: tasks, runs, agents. The first given comes first.
 * @param {RunView[]} runs @param {{agent: Agent, status: string, reason: string, why: string}[]} agents @param {Set<string>} needed ids of runs that need a person
 * @returns {Next[]}
 */
export function nextUp(runs, agents, needed) {
  /** @type {Next[]} */
  const list = [];
  for (const r of runs) {
    if (isOver(r) || needed.has(r.run_id)) continue;
    const status = r.task?.status ?? (r.stage === 'paused' ? 'paused' : r.status);
    if (!['queued', 'blocked', 'waiting', 'paused', 'pr_open'].includes(status)) continue;
    const why = r.task?.why || (r.waits ?? [])[0] || (status === 'pr_open' ? 'its pull request is open' : '');
    list.push({ key: `run/${r.run_id}`, title: plain(r.task?.title || r.workflow_name, 160) || 'unnamed', why: plain(why, 300), at: Date.parse(r.created_at), run: r, status });
  }
  for (const { agent: a, status, reason, why } of agents) {
    const later = status === 'rate_limited' || status === 'backing_off' || (status === 'idle' && (reason === 'queued' || reason === 'held'));
    if (later) list.push({ key: `agent/${a.name}`, title: plain(a.name, 80), why: plain(why, 300), at: Infinity, agent: a.name, status });
  }
  return list.sort((a, b) => (a.at === b.at ? (a.key < b.key ? -1 : 1) : a.at - b.at));
}

/** The favicon with the number of things that need a person. @param {number} n @returns {string} an address of data; empty: the ordinary one */
export function badge(n) {
  if (n <= 0) return '';
  const text = n > 9 ? '9+' : String(Math.floor(n));
  const svg = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="7" fill="#0f1a24"/><g fill="none" stroke="#8fc3dc" stroke-width="2.4" stroke-linecap="round"><path d="M4 9h12M4 16h10M4 23h9"/></g><circle cx="20" cy="17" r="11.5" fill="#ecd06a"/><text x="20" y="${n > 9 ? 22 : 23}" font-family="sans-serif" font-weight="700" font-size="${n > 9 ? 13 : 17}" text-anchor="middle" fill="#14110a">${text}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}
