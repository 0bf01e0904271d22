// The evidence for an agent's status: each piece with its source and its age.

import { age } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { Icon } from '../shell/icons.js';

/** The current age of a piece of evidence; from oldMs on it is marked as old. @param {{ms: number | null | undefined, readAt: number, oldMs?: number}} props */
export function Age({ ms, readAt, oldMs = Infinity }) {
  if (ms === null || ms === undefined) return html`<span class="num">\u2013</span>`;
  const total = ms + Math.max(0, now.value - readAt);
  return html`<time class="num ${total > oldMs ? 'old' : ''}">${age(total)} ago</time>`;
}

/** @param {{why: import('../shell/api.js').Why | null, readAt: number, wrong: string}} props */
export function EvidenceTab({ why, readAt, wrong }) {
  if (wrong) return html`<div class="quiet-note"><p>${plain(wrong)}</p></div>`;
  if (!why) return html`<div class="quiet-note"><p>Reading\u2026</p></div>`;
  const list = why.evidence ?? [], layers = why.layers ?? [];
  return html`<div class="evidence">
    ${why.verdict && html`<p class="verdict">${plain(why.verdict, 600)}</p>`}
    ${layers.length > 0 && html`<details class="layers"><summary>Enforced by: ${layers.filter((l) => l.holds).map((l) => plain(l.name, 40)).join(', ') || 'nothing'}</summary><ul class="held-by">${layers.map((l) => html`<li key=${l.name} class=${l.holds ? 'layer-holds' : 'layer-not'}><${Icon} name=${l.holds ? 'check' : 'look'} /><span><b>${plain(l.name, 40)}</b>${l.holds ? '' : ' does not enforce:'} ${plain(l.text, 800)}</span></li>`)}</ul></details>`}
    ${list.length === 0 ? html`<p class="quiet-note">There is no evidence, so the status is unknown.</p>` : html`
    <table class="sheet-table"><caption class="hidden">Evidence</caption>
      <thead><tr><th scope="col">Holds</th><th scope="col">What</th><th scope="col">Source</th><th scope="col" class="right">Seen</th></tr></thead>
      <tbody>${list.map((e, i) => html`<tr key=${i} class=${e.holds ? '' : 'row-false'}>
        <td><span class="holds ${e.holds ? 'holds-yes' : 'holds-no'}"><${Icon} name=${e.holds ? 'check' : 'cross'} />${e.holds ? 'yes' : 'no'}</span></td>
        <td class="wide">${plain(e.what)}</td><td class="soft">${plain(e.source, 60)}</td>
        <td class="right"><${Age} ms=${e.age_ms} readAt=${readAt} /></td></tr>`)}</tbody></table>`}
  </div>`;
}
