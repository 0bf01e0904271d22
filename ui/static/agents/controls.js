// The badge and the buttons of one agent (seed 000). Nothing is shown as done before it is.

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
import { idleReason, statusOf, STATUS_MARKS, STATUS_WORDS } from '../shell/status.js';

/** @typedef {import('./state.js').Cell} Cell */
/** @typedef {import('../shell/api.js').Verb} Verb */

/** The status of an agent. @param {{cell: Cell}} props */
export function Badge({ cell: c }) {
  const a = c.agent.value;
  const word = statusOf(a, team.value.stopping, a.limited_until ? now.value : 0);
  const why = idleReason(a, word);
  return html`<${StatusMark} status=${word} title=${why && why !== 'paused' ? why : undefined} />`;
}

/** A status as colour, shape and word. @param {{status: string, title?: string}} props */
export function StatusMark({ status, title }) {
  const word = /** @type {import('../shell/status.js').Status} */ (Object.hasOwn(STATUS_WORDS, status) ? status : 'unknown');
  return html`<span class="badge badge-${word}" title=${title}><i class="badge-mark" aria-hidden="true">${STATUS_MARKS[word]}</i>${STATUS_WORDS[word]}</span>`;
}

/** @type {Record<Verb, string>} */
const ICONS = { start: 'play', stop: 'stop', once: 'once', cleanup: 'broom' };

/**
 * One order. A disabled order can still have the focus, so keyboard users keep their place.
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

/** The button of the seed's table: Stop for a running agent, Start for an idle one. @param {{cell: Cell, tabIndex?: number}} props */
export function MainOrder({ cell: c, tabIndex }) {
  return running(c.agent.value)
    ? html`<${Order} key="main" cell=${c} verb="stop" look="stop" tabIndex=${tabIndex} hint="The current session finishes first" />`
    : html`<${Order} key="main" cell=${c} verb="start" look="start" tabIndex=${tabIndex} hint="Runs session after session until it is stopped" />`;
}

/** All orders of the selected agent. @param {{cell: Cell}} props */
export function Orders({ cell: c }) {
  const a = c.agent.value;
  const on = running(a);
  const look = on ? 'quiet' : 'plain';
  const hint = (/** @type {string} */ what) => (on ? `${what}, after the current session` : `${what}, then stops`);
  return html`<div class="orders" role="group" aria-label="Orders">
    <${MainOrder} cell=${c} />
    ${on && html`<span class="orders-then">then</span>`}
    <${Order} cell=${c} verb="once" look=${look} hint=${hint('One session')} />
    <${Order} cell=${c} verb="cleanup" look=${look} hint=${hint('One session that only cleans up')} />
    ${on && a.desired_state !== 'continuous' && html`<${Order} cell=${c} verb="start" look="quiet" label="Keep Running" hint="Session after session, as before" />`}
    ${!on && a.desired_state !== 'pause' && html`<${Order} cell=${c} verb="stop" look="quiet" label="Do Not Start" hint="Withdraws the order before its session starts" />`}
    ${endable(a) && html`<${Act} at=${endKey(c.name)} look="quiet" icon="stop" label=${a.session?.ending ? 'End It At Once' : 'End This Session'}
      hint=${a.session?.ending ? 'Without waiting for it' : 'Instead of waiting until it has finished'} act=${() => endSession(c.name)} /><${Fault} at=${endKey(c.name)} />`}
  </div>`;
}

/** Can a person end the session early? Only after a stop, and only a session of the agent's own loop: runs, channels and leads have orders of their own. @param {import('../shell/api.js').Agent} a */
const endable = (a) => running(a) && a.desired_state === 'pause' && a.session?.for === 'control';

/** @type {Record<Verb, string>} */
const ASKED = { start: 'start asked', stop: 'stop asked', once: 'single session asked', cleanup: 'cleanup session asked' };

/** Shows the desired state if it differs from the current one. @param {{cell: Cell}} props */
export function Intent({ cell: c }) {
  const a = c.agent.value;
  const pending = c.pending.value;
  if (pending) return html`<span class="intent intent-pending">${ASKED[pending.verb]}\u2026</span>`;
  const words = intent(a, team.value.hold, a.retry_at || a.limited_until ? now.value : 0);
  return words ? html`<span class="intent">${plain(words, 120)}</span>` : null;
}

/**
 * The line under the name. It shows the most important of: a question, a doubt, the next state,
 * the current work.
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
