// The rotation: the agent with the turn and its remaining time, the queue, the agents outside of
// the queue, and the orders for each.

import { skew } from '../shell/api.js';
import { able, assign, grant, remove } from './actions.js';
import { plural, span } from '../shell/format.js';
import { html, useMemo, useSignal } from '../shell/lib.js';
import { asked } from '../shell/orders.js';
import { live, seenUntil } from '../shell/connection.js';
import { names } from '../agents/state.js';
import { rotationOf, memberWords } from './words.js';
import { plain } from '../shell/text.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';

/** @typedef {import('../shell/api.js').Channel} Channel */
/** @typedef {import('../shell/api.js').Member} Member */

/** With more participants the numbers on the ring would overlap. */
const NUMBERED_MAX = 16;
const RING_RADIUS = 88, ARC_RADIUS = 70;

/** @param {number} i @param {number} n */
const spot = (i, n) => {
  const a = (i / n) * 2 * Math.PI - Math.PI / 2;
  return { x: 104 + RING_RADIUS * Math.cos(a), y: 104 + RING_RADIUS * Math.sin(a) };
};

/** The remaining time of the turn, as a fraction and as text. @param {{c: Channel}} props */
function Clock({ c }) {
  const end = c.deadline ? Date.parse(c.deadline) : NaN;
  const left = end - (seenUntil.value + skew.ms);
  const whole = Math.max(end - (c.since ? Date.parse(c.since) : NaN) || c.timeout_ms, 1);
  const part = Number.isFinite(left) ? Math.min(1, Math.max(0, left / whole)) : c.holder ? 1 : 0;
  return html`<svg class="ring-arc ring-arc-${c.state.toLowerCase()} ${Number.isFinite(left) ? '' : 'ring-still'}" viewBox="0 0 208 208" aria-hidden="true" focusable="false">
    <circle class="ring-bed" cx="104" cy="104" r=${ARC_RADIUS} />
    ${c.holder && html`<circle class="ring-left" cx="104" cy="104" r=${ARC_RADIUS} pathLength="100" stroke-dasharray="${(part * 100).toFixed(1)} 100" transform="rotate(-90 104 104)" />`}</svg>
    <p class="ring-words">${c.holder ? html`<b class="num">${Number.isFinite(left) ? span(left) : c.state === 'WAITING' ? 'waits' : '\u2013'}</b><bdi>${plain(c.holder, 40)}</bdi>`
      : html`<b>parked</b><span class="soft">${c.turn > 0 ? plural(c.turn, 'turn') : 'no turn yet'}</span>`}</p>`;
}

/** @param {{c: Channel}} props */
function Ring({ c }) {
  const { holder, queue } = rotationOf(c);
  const round = holder ? [holder, ...queue] : queue;
  const many = round.length > NUMBERED_MAX;
  const dots = useMemo(() => round.map((m, i) => {
    const { x, y } = spot(i, round.length);
    const look = m === holder ? `dot-holder dot-${c.state.toLowerCase()}` : i === (holder ? 1 : 0) ? 'dot-next' : '';
    const place = holder ? i : i + 1;
    return html`<g key=${m.name} class="dot ${look}"><circle cx=${x.toFixed(1)} cy=${y.toFixed(1)} r=${many ? (m === holder ? 7 : 4.5) : 11} />
      ${!many && m !== holder && html`<text x=${x.toFixed(1)} y=${(y + 4).toFixed(1)}>${place}</text>`}</g>`;
  }), [round.map((m) => m.name).join('\n'), c.state, c.holder]);
  return html`<div class="ring"><svg viewBox="0 0 208 208" aria-hidden="true" focusable="false"><circle class="ring-track" cx="104" cy="104" r=${RING_RADIUS} />${dots}</svg><${Clock} c=${c} /></div>`;
}

/** @param {{c: Channel, m: Member, at: string, isNext: boolean, open: boolean, toggle: () => void, id: string}} props */
function MemberRow({ c, m, at, isNext, open, toggle, id }) {
  const holds = c.holder === m.name;
  const key = `member ${m.name}`;
  const words = holds ? (c.state === 'WAITING' ? 'waits' : m.working ? 'answering' : 'has the turn') : isNext ? 'next' : at ? '' : memberWords(m);
  return html`<li class="member ${holds ? `member-${c.state.toLowerCase()}` : ''} ${at ? '' : 'member-out'}">
    <button type="button" class="member-name" aria-expanded=${open ? 'true' : 'false'} aria-controls=${id} onClick=${toggle}>
      <span class="member-at num">${holds ? html`<${Icon} name=${c.state === 'WAITING' ? 'hold' : 'play'} />` : at}</span><bdi>${plain(m.name, 80)}</bdi>
      ${c.lead === m.name && html`<span class="tag">lead</span>`}${m.foreign && html`<span class="tag">foreign</span>`}
      <span class="member-words">${words}</span></button>
    ${open && html`<div class="member-more" id=${id}>
      <p class="soft">${m.state}${m.took > 0 ? `, ${plural(m.took, 'turn')} since a person spoke` : ''}${at && memberWords(m) ? `, ${memberWords(m)}` : ''}${m.working && !holds ? ', at work' : ''}. <a class="link" href="#/agents/${encodeURIComponent(m.name)}/output">Output</a></p>
      <div class="member-acts">
        ${!holds && html`<${Act} look="plain" icon="play" label=${c.holder ? 'Grant now' : 'Grant the turn'} at=${key} act=${() => grant(c.name, m.name, c.holder !== '')} hint=${c.holder ? `Ends the turn of ${plain(c.holder, 60)}` : ''} />`}
        ${m.disabled ? html`<${Act} look="plain" icon="check" label="Enable" at=${key} act=${() => able(m.name, 'enable')} />`
          : html`<${Act} look="quiet" icon="hold" label="Disable" at=${key} act=${() => able(m.name, 'disable')} hint="The agent takes no turn in any channel until it is enabled" />`}
        <${Act} look="quiet" icon="cross" label="Remove" at=${key} act=${() => remove(c.name, m.name)} hint="Removes it from this channel" />
      </div><${Fault} at=${key} /></div>`}
  </li>`;
}

/** @param {{c: Channel}} props */
function Assign({ c }) {
  const who = useSignal('');
  const free = names.value.filter((n) => !(c.agents ?? []).some((m) => m.name === n));
  if (free.length === 0) return html`<${Fault} at="assign" />`;
  const off = !live.value || asked.value !== '' || !who.value;
  const send = async () => { if (!off && await assign(c.name, who.value)) who.value = ''; };
  return html`<div class="assign"><label class="hidden" for="assign">Agent to assign</label>
    <select id="assign" value=${who.value} onChange=${(/** @type {any} */ e) => { who.value = e.target.value; }}><option value="">Assign an agent\u2026</option>${free.map((n) => html`<option key=${n} value=${n}>${plain(n, 60)}</option>`)}</select>
    <button type="button" class="order order-plain" aria-disabled=${off ? 'true' : undefined} aria-busy=${asked.value === 'assign' ? 'true' : undefined} onClick=${send}>Assign</button></div><${Fault} at="assign" />`;
}

/** @param {{c: Channel}} props */
export function Rotation({ c }) {
  const open = useSignal('');
  const { holder, queue, others } = rotationOf(c);
  const row = (/** @type {Member} */ m, /** @type {string} */ at, /** @type {boolean} */ isNext, /** @type {number} */ i) => html`<${MemberRow} key=${m.name} c=${c} m=${m} at=${at} isNext=${isNext} id="member-${at ? 'in' : 'out'}-${i}"
    open=${open.value === m.name} toggle=${() => { open.value = open.value === m.name ? '' : m.name; }} />`;
  return html`<aside class="rotation-side" aria-label="The rotation">
    <${Ring} c=${c} />
    ${(holder || queue.length > 0) && html`<ol class="members" aria-label="The turn passes in this order">${holder && row(holder, '0', false, 0)}${queue.map((m, i) => row(m, String(i + 1), i === 0, i + 1))}</ol>`}
    ${others.length > 0 && html`<h3>Not in the queue</h3><ul class="members">${others.map((m, i) => row(m, '', false, i))}</ul>`}
    ${(c.agents ?? []).length === 0 && html`<p class="soft rotation-none">The rotation has no agent yet.</p>`}
    <${Assign} c=${c} />
  </aside>`;
}
