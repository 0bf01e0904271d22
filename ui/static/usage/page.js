// Usage by agent, by day and by run, as reported by the agents.

import { count, money, tokens } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { plain } from '../shell/text.js';
import { tell } from '../agents/actions.js';
import { saveUsage } from '../shell/api.js';
import { DayChart } from './chart.js';
import { usage, usageWrong } from './state.js';
import { choose, go, showRun } from '../shell/router.js';

/** @typedef {import('../shell/api.js').UsageRow} UsageRow */

/** Rows shown per table; the command line lists all of them. */
const SHOWN_MAX = 200;

const NOT_REPORTED = html`<td class="num soft" title="not reported">\u2013</td>`;

/** Zero would say that nothing was used; agents report what they use, or nothing. @param {UsageRow} r */
const figures = (r) => {
  const told = (r.input_tokens ?? 0) + (r.output_tokens ?? 0) > 0;
  return html`${told ? html`<td class="num">${tokens(r.input_tokens ?? 0)}</td><td class="num">${tokens(r.output_tokens ?? 0)}</td>` : html`${NOT_REPORTED}${NOT_REPORTED}`}${r.cost_usd ? html`<td class="num">${money(r.cost_usd)}</td>` : NOT_REPORTED}`;
};

/** @param {{id: string, title: string, head: string[], rows: UsageRow[], first: (r: UsageRow) => any[]}} props */
function Table({ id, title, head, rows, first }) {
  if (rows.length === 0) return null;
  return html`<div class="usage-part"><h3 id=${id}>${title}</h3>
    <div class="usage-scroll" tabIndex=${0} role="region" aria-labelledby=${id}><table class="usage-table"><thead><tr>${head.map((h) => html`<th key=${h} scope="col">${h}</th>`)}<th scope="col" class="num">Sessions</th><th scope="col" class="num">Tokens in</th><th scope="col" class="num">out</th><th scope="col" class="num">Cost</th></tr></thead>
      <tbody>${rows.slice(0, SHOWN_MAX).map((r, n) => html`<tr key=${n}>${first(r).map((cell, i) => (i === 0 ? html`<th key=${i} scope="row">${cell}</th>` : html`<td key=${i}>${cell}</td>`))}
        <td class="num">${count(r.sessions ?? 0)}</td>${figures(r)}</tr>`)}</tbody></table></div>
    ${rows.length > SHOWN_MAX && html`<p class="quiet-note">and ${rows.length - SHOWN_MAX} more: <code>fairlead usage</code></p>`}</div>`;
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
      : html`<div class="usage-sum"><p>${u.total?.cost_usd ? html`<b class="num">${money(u.total.cost_usd)}</b>, ` : ''}<b class="num">${tokens((u.total?.input_tokens ?? 0) + (u.total?.output_tokens ?? 0))}</b> tokens in ${count(u.total?.sessions ?? 0)} sessions, on the days that are kept.</p>
          <button type="button" class="plain-button" onClick=${() => { saveUsage().catch((err) => tell('download of usage', err)); }}>Download CSV</button></div>
        ${(u.budgets ?? []).length > 0 && html`<div class="usage-part"><h3 id="usage-budgets">Budgets of today</h3><p class="soft">The forecast divides what was used by the part of the day (UTC) that has passed.</p>
          <ul aria-labelledby="usage-budgets">${(u.budgets ?? []).slice(0, SHOWN_MAX).map((b) => html`<${Budget} key=${`${b.agent}/${b.measure}`} b=${b} />`)}</ul></div>`}
        <${DayChart} rows=${days} />
        <${Table} id="usage-agents" title="By agent" head=${['Agent']} rows=${agents} first=${(/** @type {UsageRow} */ r) => [html`<${Who} name=${r.agent} />`]} />
        <${Table} id="usage-days" title="By day" head=${['Day', 'Agent']} rows=${days} first=${(/** @type {UsageRow} */ r) => [plain(r.day, 20), html`<${Who} name=${r.agent} />`]} />
        <${Table} id="usage-runs" title="By task and run" head=${['Run', 'Task or workflow']} rows=${runs} first=${(/** @type {UsageRow} */ r) => [html`<button type="button" class="link" onClick=${() => showRun(r.run_id ?? '')}><code>${plain(r.run_id, 48)}</code></button>`, plain(r.title || r.workflow_name, 80)]} />`}
  </div>`;
}
