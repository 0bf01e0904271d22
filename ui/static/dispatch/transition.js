// A line of a session's history, and its time.

import { moment } from '../shell/format.js';
import { html } from '../shell/lib.js';
import { now } from '../shell/connection.js';
import { plain } from '../shell/text.js';

/** @typedef {import('../shell/api.js').DispatchLine} Line */

/** @param {{at: string | null}} props */
export const When = ({ at }) => (at ? html`<time class="num soft" datetime=${at}>${moment(Date.parse(at), now.value)}</time>` : null);

/** The line's own type, if its trigger does not say the same. @param {Line} l */
const kind = (l) => { const words = l.type.replaceAll('_', ' '); return l.trigger.startsWith(words.split(' ')[0]) ? '' : plain(words, 40); };

/** A transition in the seed's notation. @param {{line: Line}} props */
export const Transition = ({ line: l }) => html`<span class="moved">${l.shown ? html`<b class="moved-shown">${plain(l.shown, 300)}</b>` : kind(l) && html`<span class="moved-type">${kind(l)}</span>`}${' '}
  <span class="soft">${plain(l.trigger, 300)}</span></span>`;
