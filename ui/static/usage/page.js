// Usage by day, agent, task and model, as reported by the agents.

import { count, money, plural, tokens } from '../shell/format.js';
import { html, useSignal } from '../shell/lib.js';
import { plain } from '../shell/text.js';
import { tell } from '../agents/actions.js';
import { saveUsage } from '../shell/api.js';
import { DayChart } from './chart.js';
import { usage, usageWrong } from './state.js';
import { choose, go, showRun, showTask } from '../shell/router.js';

/** @typedef {import('../shell/api.js').UsageRow} UsageRow */

/** Rows shown per table; the command line lists all of them. */
const SHOWN_MAX = 200;

const NOT_REPORTED = html`<td class="num soft" title="not reported">\u2013</td>`;

/** Zero would say that nothing was used; agents report what they use, or nothing. @param {UsageRow} r */
const figures = (r) => {
  const told = (r.input_tokens ?? 0) + (r.output_tokens ?? 0) > 0;
  return html`${r.cost_usd ? html`<td class="num">${money(r.cost_usd)}</td>` : NOT_REPORTED}${told ? html`<td class="num">${tokens(r.input_tokens ?? 0)}</td><td class="num">${tokens(r.output_tokens ?? 0)}</td>` : html`${NOT_REPORTED}${NOT_REPORTED}`}`;
};

/** What the bars of a table compare: cost where any is known, otherwise tokens. @param {UsageRow[]} rows @returns {(r: UsageRow) => number} */
export const measureOf = (rows) => (rows.some((r) => (r.cost_usd ?? 0) > 0) ? (r) => r.cost_usd ?? 0 : (r) => (r.input_tokens ?? 0) + (r.output_tokens ?? 0));

/** The sum of some rows; pure. @param {UsageRow[]} rows @returns {UsageRow} */
export const sumOf = (rows) => rows.reduce((s, r) => ({
  sessions: (s.sessions ?? 0) + (r.sessions ?? 0), input_tokens: (s.input_tokens ?? 0) + (r.input_tokens ?? 0), output_tokens: (s.output_tokens ?? 0) + (r.output_tokens ?? 0), cost_usd: (s.cost_usd ?? 0) + (r.cost_usd ?? 0),
}), /** @type {UsageRow} */ ({ sessions: 0, input_tokens: 0, output_tokens: 0, cost_usd: 0 }));

/** The agents' rows of each day as one, the newest day first; pure. @param {UsageRow[]} rows @returns {UsageRow[]} */
export function byDay(rows) {
  /** @type {Map<string, UsageRow[]>} */
  const days = new Map();
  for (const r of rows) days.set(r.day ?? '', [...(days.get(r.day ?? '') ?? []), r]);
  return [...days].map(([day, all]) => ({ ...sumOf(all), day }));
}

/** One table: a bar for the share of each row, its figures, and the total. @param {{by: By, rows: UsageRow[]}} props */
function Table({ by, rows }) {
  if (rows.length === 0) return html`<p class="quiet-note">Nothing has been reported by ${by} yet.</p>`;
  const of = measureOf(rows), most = Math.max(...rows.map(of)), total = sumOf(rows);
  const sessions = (/** @type {UsageRow} */ r) => (r.sessions ? html`<td class="num">${count(r.sessions)}</td>` : html`<td class="num soft">\u2013</td>`);
  return html`<div class="usage-scroll" tabIndex=${0} role="region" aria-labelledby="usage-by"><table class="usage-table"><thead><tr><th scope="col">${HEADS[by]}</th><th scope="col"><span class="hidden">Share</span></th><th scope="col" class="num">Cost</th><th scope="col" class="num">Tokens in</th><th scope="col" class="num">out</th><th scope="col" class="num">Sessions</th></tr></thead>
      <tbody>${rows.slice(0, SHOWN_MAX).map((r, n) => html`<tr key=${n}><th scope="row">${nameOf(by, r)}</th><td class="usage-share"><span class="usage-bar" aria-hidden="true"><i style=${{ width: `${most > 0 ? (100 * of(r)) / most : 0}%` }}></i></span></td>${figures(r)}${sessions(r)}</tr>`)}</tbody>
      <tfoot><tr><th scope="row">Total</th><td></td>${figures(total)}${sessions(total)}</tr></tfoot></table></div>
    ${rows.length > SHOWN_MAX && html`<p class="quiet-note">and ${rows.length - SHOWN_MAX} more: <code>fairlead usage --by ${by}</code></p>`}`;
}

/** @typedef {'day' | 'agent' | 'task' | 'model'} By */
const BYS = /** @type {By[]} */ (['day', 'agent', 'task', 'model']);
/** @type {Record<By, string>} */
const HEADS = { day: 'Day', agent: 'Agent', task: 'Task or run', model: 'Model' };

/** @param {By} by @param {UsageRow} r */
function nameOf(by, r) {
  if (by === 'day') return plain(r.day, 20);
  if (by === 'agent') return html`<${Who} name=${r.agent} />`;
  if (by === 'task') return html`<button type="button" class="link" onClick=${() => (r.title ? showTask : showRun)(r.run_id ?? '')}><code>${plain(r.run_id, 48)}</code></button> ${plain(r.title || r.workflow_name, 80)}`;
  return r.model ? html`<bdi>${plain(r.model, 100)}</bdi>` : html`<span class="soft">not reported</span>`;
}

/** @param {{usage: import('../shell/api.js').UsageTable}} props */
function Groups({ usage: u }) {
  const by = useSignal(/** @type {By} */ ('day'));
  const rows = { day: byDay(u.days ?? []), agent: u.agents ?? [], task: u.runs ?? [], model: u.models ?? [] }[by.value];
  return html`<div class="usage-part"><div class="usage-chart-head"><h3 id="usage-by">By ${by.value}</h3>
      <div class="usage-switch" role="group" aria-label="Sum up by">${BYS.map((b) => html`<button key=${b} type="button" class="plain-button" aria-pressed=${by.value === b ? 'true' : 'false'} onClick=${() => { by.value = b; }}>${b[0].toUpperCase() + b.slice(1)}</button>`)}</div></div>
    ${by.value === 'model' && html`<p class="soft">The model is what the agent's program says. What it used without naming one is not reported.</p>`}
    <${Table} by=${by.value} rows=${rows} /></div>`;
}

/** @param {{name?: string}} props */
const Who = ({ name }) => html`<button type="button" class="link" onClick=${() => { go('agents'); choose(name ?? ''); }}><bdi>${plain(name, 80)}</bdi></button>`;

/** A daily limit: what was used of it, and what the day ends with if it goes on as so far. @param {{b: import('../shell/api.js').Budget}} props */
function Budget({ b }) {
  const words = (/** @type {number} */ n) => (b.measure === 'cost_usd' ? money(n) : `${tokens(Math.round(n))} tokens`);
  const over = b.used >= b.limit, soon = !over && (b.forecast ?? 0) > b.limit;
  const id = `budget-${b.agent ?? ''}-${b.measure}`;
  return html`<li class="budget"><p id=${id}>${b.agent ? html`<${Who} name=${b.agent} />` : 'The team'}: ${words(b.used)} of ${words(b.limit)} today</p>
    <progress max="1" value=${Math.min(1, b.used / b.limit)} aria-labelledby=${id}></progress>
    <p class="soft">${over ? html`<b class="is-denied">Reached.</b> No session starts until the next day (UTC).` : b.forecast ? html`${soon && html`<b class="is-denied">Too fast.</b> `}At today's rate ${words(b.forecast)} by the end of the day.` : 'Too early in the day for a forecast.'}</p></li>`;
}

export function UsagePage() {
  const u = usage.value;
  const agents = u?.agents ?? [], days = u?.days ?? [], runs = u?.runs ?? [];
  return html`<div class="usage"><h2 id="usage-title" tabIndex=${-1}>Usage</h2>
    <p class="soft">As the agents reported it themselves; days are UTC.</p>
    ${!u ? html`<p class="quiet-note">${usageWrong.value ? plain(usageWrong.value, 400) : 'Asking Fairlead what was used\u2026'}</p>`
      : agents.length + days.length + runs.length === 0 ? html`<p class="quiet-note">No agent has reported any usage yet.</p>`
      : html`<div class="usage-sum"><p>${u.total?.cost_usd ? html`<b class="num">${money(u.total.cost_usd)}</b>, ` : ''}<b class="num">${tokens((u.total?.input_tokens ?? 0) + (u.total?.output_tokens ?? 0))}</b> tokens in ${plural(u.total?.sessions ?? 0, 'session')}, on the days that are kept.</p>
          <button type="button" class="plain-button" onClick=${() => { saveUsage().catch((err) => tell('download of usage', err)); }}>Download CSV</button></div>
        ${(u.budgets ?? []).length > 0 && html`<div class="usage-part"><h3 id="usage-budgets">Budgets of today</h3><p class="soft">The forecast divides what was used by the part of the day (UTC) that has passed.</p>
          <ul aria-labelledby="usage-budgets">${(u.budgets ?? []).slice(0, SHOWN_MAX).map((b) => html`<${Budget} key=${`${b.agent}/${b.measure}`} b=${b} />`)}</ul></div>`}
        <${DayChart} rows=${days} />
        <${Groups} usage=${u} />`}
  </div>`;
}
