// The badge and the buttons of one agent: the seed's table, and nothing shown
// as done before it is.

import { command, LABELS } from './actions.js';
import { endKey, endSession } from '../inbox/actions.js';
import { asksOf } from '../inbox/words.js';
import { concerns, doing, intent, running } from './words.js';
import { html } from '../shell/lib.js';
import { live, now } from '../shell/connection.js';
import { team } from './state.js';
import { plain } from '../shell/text.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';

/** @typedef {import('./state.js').Cell} Cell */
/** @typedef {import('../shell/api.js').Verb} Verb */

/** @param {{on: boolean}} props */
export const Badge = ({ on }) => html`<span class="badge ${on ? 'badge-running' : 'badge-idle'}"><span class="badge-dot" aria-hidden="true"></span>${on ? 'RUNNING' : 'IDLE'}</span>`;

/** @type {Record<Verb, string>} */
const ICONS = { start: 'play', stop: 'stop', once: 'once', cleanup: 'broom' };

/**
 * One order. It stays focusable while it may not be used, so that the keyboard never loses its place.
 * @param {{cell: Cell, verb: Verb, look: string, label?: string, hint?: string, tabIndex?: number}} props
 */
export function Order({ cell: c, verb, look, label = LABELS[verb], hint, tabIndex }) {
  const pending = c.pending.value;
  const off = !live.value || pending !== null || c.agent.value.removed === true;
  const name = plain(c.name, 80);
  return html`<button type="button" class="order order-${look}" tabIndex=${tabIndex} data-verb=${verb}
    aria-disabled=${off ? 'true' : undefined} aria-busy=${pending?.verb === verb ? 'true' : undefined}
    aria-label="${label}: ${name}" title=${hint}
    onClick=${(/** @type {Event} */ e) => { e.stopPropagation(); if (!off) command(c.name, verb); }}>
    <${Icon} name=${ICONS[verb]} /><span>${label}</span>
  </button>`;
}

/** The one button of the seed's table: Stop where it runs, Start where it does not. @param {{cell: Cell, tabIndex?: number}} props */
export function MainOrder({ cell: c, tabIndex }) {
  return running(c.agent.value)
    ? html`<${Order} key="main" cell=${c} verb="stop" look="stop" tabIndex=${tabIndex} hint="The session under way finishes first" />`
    : html`<${Order} key="main" cell=${c} verb="start" look="start" tabIndex=${tabIndex} hint="Runs session after session until it is stopped" />`;
}

/** All orders of the chosen agent. @param {{cell: Cell}} props */
export function Orders({ cell: c }) {
  const a = c.agent.value;
  const on = running(a);
  const look = on ? 'quiet' : 'plain';
  const hint = (/** @type {string} */ what) => (on ? `${what}, after the session under way` : `${what}, then rests`);
  return html`<div class="orders" role="group" aria-label="Orders">
    <${MainOrder} cell=${c} />
    ${on && html`<span class="orders-then">then</span>`}
    <${Order} cell=${c} verb="once" look=${look} hint=${hint('One session')} />
    <${Order} cell=${c} verb="cleanup" look=${look} hint=${hint('One session that only tidies up')} />
    ${on && a.desired_state !== 'continuous' && html`<${Order} cell=${c} verb="start" look="quiet" label="Keep Running" hint="Session after session, as before" />`}
    ${!on && a.desired_state !== 'pause' && html`<${Order} cell=${c} verb="stop" look="quiet" label="Do Not Start" hint="Withdraws the wish that has not begun" />`}
    ${endable(a) && html`<${Act} at=${endKey(c.name)} look="quiet" icon="stop" label=${a.session?.ending ? 'End It At Once' : 'End This Session'}
      hint=${a.session?.ending ? 'Without waiting for it' : 'Instead of waiting until it has finished'} act=${() => endSession(c.name)} /><${Fault} at=${endKey(c.name)} />`}
  </div>`;
}

/** Whether a person may want the session ended: it was to finish, and is still at it. Those of runs, channels and leads have orders of their own. @param {import('../shell/api.js').Agent} a */
const endable = (a) => running(a) && a.desired_state === 'pause' && a.session?.for === 'control';

/** @type {Record<Verb, string>} */
const ASKED = { start: 'start asked', stop: 'stop asked', once: 'single session asked', cleanup: 'cleanup session asked' };

/** Where what is wanted and what is differ. @param {{cell: Cell}} props */
export function Intent({ cell: c }) {
  const a = c.agent.value;
  const pending = c.pending.value;
  if (pending) return html`<span class="intent intent-pending">${ASKED[pending.verb]}\u2026</span>`;
  const words = intent(a, team.value.hold, a.retry_at || a.limited_until ? now.value : 0);
  return words ? html`<span class="intent">${plain(words, 120)}</span>` : null;
}

/**
 * The line under the name, the most important thing first: what is asked, what
 * is doubtful, what comes next, what it is at.
 * @param {{cell: Cell}} props
 */
export function RowLine({ cell: c }) {
  const a = c.agent.value;
  const [worry] = concerns(a);
  const words = a.doubt && !c.pending.value ? '' : intent(a, team.value.hold, a.retry_at || a.limited_until ? now.value : 0);
  if (a.asks && !c.pending.value) return html`<span class="row-line"><span class="doing row-asks">${plain(asksOf(a), 160)}</span></span>`;
  return html`<span class="row-line">${(words || c.pending.value) && html`<${Intent} cell=${c} />`}
    ${worry && !words.startsWith('waiting') ? html`<span class="doing worry">${plain(worry, 160)}</span>`
      : !words && !c.pending.value && html`<span class="doing">${a.session && a.says?.text ? plain(a.says.text, 160) : running(a) ? doing(a) : plain(a.description || doing(a), 120)}</span>`}</span>`;
}
