// Usage by agent, by day and by run, as reported by the agents.

import { count, money, tokens } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { plain } from '../shell/text.js';
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

export function UsagePage() {
  const u = usage.value;
  const agents = u?.agents ?? [], days = u?.days ?? [], runs = u?.runs ?? [];
  return html`<div class="usage"><h2 id="usage-title" tabIndex=${-1}>Usage</h2>
    <p class="soft">As the agents reported it themselves; days are UTC.</p>
    ${!u ? html`<p class="quiet-note">${usageWrong.value ? plain(usageWrong.value, 400) : 'Asking Fairlead what was used\u2026'}</p>`
      : agents.length + days.length + runs.length === 0 ? html`<p class="quiet-note">No agent has reported any usage yet.</p>`
      : html`<${Table} id="usage-agents" title="By agent" head=${['Agent']} rows=${agents} first=${(/** @type {UsageRow} */ r) => [html`<${Who} name=${r.agent} />`]} />
        <${Table} id="usage-days" title="By day" head=${['Day', 'Agent']} rows=${days} first=${(/** @type {UsageRow} */ r) => [plain(r.day, 20), html`<${Who} name=${r.agent} />`]} />
        <${Table} id="usage-runs" title="By run" head=${['Run', 'Workflow']} rows=${runs} first=${(/** @type {UsageRow} */ r) => [html`<button type="button" class="link" onClick=${() => showRun(r.run_id ?? '')}><code>${plain(r.run_id, 48)}</code></button>`, plain(r.workflow_name, 80)]} />`}
  </div>`;
}
