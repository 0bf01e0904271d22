// The past of one agent: its sessions, and every change with its rule and its actor.

import * as api from '../shell/api.js';
import { outcomeOf } from '../agents/words.js';
import { moment, size, span } from '../shell/format.js';
import { html, signal, useSignal } from '../shell/lib.js';
import { now } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { showSession, spot } from '../shell/router.js';
import { useChange } from './change.js';
import { changeActor, changeWords } from './words.js';
import { lookBackTo } from '../moment/state.js';
import { showRules } from '../shell/prefs.js';

/** @typedef {import('../shell/api.js').Change} Change */

/** Rows shown at first. */
const PAGE = 60;

/** The reason for each rule, by machine, row, state and event; read once from the server's tables. */
const reasons = signal(/** @type {Map<string, string>} */ (new Map()));
let asked = false;

async function learnReasons() {
  if (asked) return;
  asked = true;
  try {
    const { machines } = await api.machines();
    const map = new Map();
    for (const m of machines ?? []) for (const r of m.rows ?? []) if (r.why) map.set(`${m.name} ${r.id} ${r.from} ${r.event}`, r.why);
    reasons.value = map;
  } catch { asked = false; /* the list works without reasons */ }
}

/** @param {{sessions: import('../shell/api.js').Session[]}} props */
function Sessions({ sessions }) {
  if (sessions.length === 0) return html`<p class="quiet-note">No session yet.</p>`;
  return html`<table class="sheet-table"><caption class="hidden">Sessions</caption>
    <thead><tr><th scope="col">Session</th><th scope="col">Ended</th><th scope="col">Began</th><th scope="col" class="right">Took</th><th scope="col" class="right">Output</th></tr></thead>
    <tbody>${sessions.map((s) => {
      const o = s.ended_at ? outcomeOf(s.outcome || 'ok') : outcomeOf('');
      const from = Date.parse(s.started_at ?? s.opened_at ?? '');
      const to = s.ended_at ? Date.parse(s.ended_at) : now.value;
      return html`<tr key=${s.id}>
        <td><button type="button" class="link" onClick=${() => showSession(s.id)} title="Show its output">${plain(s.id, 60)}</button>${s.kind === 'cleanup' ? html` <span class="soft">cleanup</span>` : ''}</td>
        <td class="wide"><span class="outcome outcome-${o.look}"><i aria-hidden="true">${o.mark}</i>${plain(o.label, 30)}</span>${s.why ? html` <span class="soft">${plain(s.why, 200)}</span>` : ''}</td>
        <td class="num">${moment(from, now.value)}</td><td class="num right">${Number.isFinite(from) ? span(to - from) : '\u2013'}</td><td class="num right">${size(s.bytes ?? 0)}</td></tr>`;
    })}</tbody></table>`;
}

/** @param {{change: Change}} props */
export function ChangeRow({ change: ch }) {
  const why = reasons.value.get(`${ch.machine} ${ch.row} ${ch.from} ${ch.trigger}`);
  const rules = showRules.value === 'on';
  const words = changeWords(ch);
  return html`<li class="change change-${ch.machine === 'session' ? 'session' : 'control'}">
    <time class="num soft">${moment(Date.parse(ch.time), now.value)}</time>
    <span class="change-what"><b>${words.charAt(0).toUpperCase() + words.slice(1)}</b>
      ${rules && html`<span class="change-why"><code class="rule">${plain(ch.row, 12) || '\u2013'}</code> ${plain(ch.from, 40) || 'nothing'}<span aria-hidden="true"> \u2192 </span><span class="hidden"> to </span>${plain(ch.to, 40)}, ${plain(ch.trigger, 160)}</span>`}
      ${rules && why && html`<span class="change-why">${plain(why, 300)}</span>`}</span>
    <span class="soft who">${changeActor(ch)}</span>
    <button type="button" class="link num soft seq" title="Show the page as it was then" onClick=${() => lookBackTo(ch.seq)}>#${ch.seq}</button>
  </li>`;
}

/** The text that a change carries: a question, a note, a status. @param {{change: Change}} props */
export function Said({ change: ch }) {
  const d = ch.data ?? {}, q = d.question?.question ?? {};
  const texts = [q.what, q.call, q.why, q.text, q.option, d.control?.value?.wish?.note, d.says?.text, d.limited?.why, d.session?.why, d.team?.hold?.note].filter((t) => typeof t === 'string' && t);
  return texts.map((t, i) => html`<p key=${i} class="history-said">${plain(t, 2000)}</p>`);
}

/** @param {{cell: import('../agents/state.js').Cell, sessions: import('../shell/api.js').Session[]}} props */
export function HistoryTab({ cell: c, sessions }) {
  const more = useSignal(PAGE);
  void learnReasons();
  const trail = c.trail.value;
  const newest = trail.slice(-more.value).reverse();
  const linked = useChange(Number(spot.value));
  return html`<div class="history">
    ${spot.value && html`<section class="spot history-spot" aria-label="The change that a link led to">${linked.change ? html`<ol class="change-list"><${ChangeRow} change=${linked.change} /></ol><${Said} change=${linked.change} />`
      : html`<p class="quiet-note">${linked.wrong ? plain(linked.wrong, 300) : 'Reading\u2026'}</p>`}</section>`}
    <div class="history-head"><h3>Changes</h3><label class="soft"><input type="checkbox" checked=${showRules.value === 'on'} onChange=${(/** @type {any} */ e) => { showRules.value = e.target.checked ? 'on' : 'off'; }} /> Show rules</label></div>
    ${newest.length === 0 ? html`<p class="quiet-note">Nothing has changed yet.</p>` : html`<ol class="change-list">${newest.map((ch) => html`<${ChangeRow} key=${ch.seq} change=${ch} />`)}</ol>`}
    ${trail.length > more.value && html`<button type="button" class="plain-button" onClick=${() => { more.value += PAGE * 2; }}>Show older changes</button>`}
    <h3>Sessions</h3>
    <${Sessions} sessions=${sessions} />
  </div>`;
}
