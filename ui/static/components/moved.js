// A line of a session's history, and when it was.

import { moment } from '../format.js';
import { html } from '../lib.js';
import { now } from '../state.js';
import { plain } from '../text.js';

/** @typedef {import('../api.js').DispatchLine} Line */

/** @param {{at: string | null}} props */
export const When = ({ at }) => (at ? html`<time class="num soft" datetime=${at}>${moment(Date.parse(at), now.value)}</time>` : null);

/** A line as the seed shows a transition. @param {{line: Line}} props */
export const Moved = ({ line: l }) => html`<span class="moved">${l.shown ? html`<b class="moved-shown">${plain(l.shown, 300)}</b>` : html`<span class="moved-type">${plain(l.type, 40).replaceAll('_', ' ')}</span>`}${' '}
  <span class="soft">${plain(l.trigger, 300)}</span></span>`;
