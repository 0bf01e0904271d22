// A button, and what came of it where it was not done: both in one place.

import { html } from './lib.js';
import { asked, faults, forgive } from './orders.js';
import { live } from './connection.js';
import { Icon } from './icons.js';

/** What was not done, where its button is, until it is put away. @param {{at: string}} props */
export function Fault({ at }) {
  const words = faults.value[at];
  return html`<div role="alert" class="fault-place">${words && html`<p class="fault"><${Icon} name="look" /><span>${words}</span>
    <button type="button" class="icon-button" aria-label="Put away" onClick=${() => forgive(at)}><${Icon} name="close" /></button></p>`}</div>`;
}

/** The keyboard's place, where the button that was pressed is no longer there. */
function keepPlace() {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    if (document.activeElement === document.body) /** @type {HTMLElement | null} */ (document.querySelector('#channel-title, #crew-title, #session-title, #inbox-title'))?.focus();
  }));
}

/** @param {{look: string, icon: string, label: string, act: () => Promise<unknown>, at: string, hint?: string}} props at: where its fault is said */
export function Act({ look, icon, label, act, at, hint }) {
  const off = !live.value || asked.value !== '';
  return html`<button type="button" class="order order-${look}" title=${hint} aria-disabled=${off ? 'true' : undefined} aria-busy=${asked.value === at ? 'true' : undefined}
    onClick=${() => { if (!off) void act().then(keepPlace); }}><${Icon} name=${icon} /><span>${label}</span></button>`;
}
