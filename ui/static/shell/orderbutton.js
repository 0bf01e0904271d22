// A button and the reason if its order failed, in one place.

import { html, useLayoutEffect, useRef } from './lib.js';
import { asked, faults, clearFault } from './orders.js';
import { live } from './connection.js';
import { Icon } from './icons.js';

/** Why the order failed, until the reason is dismissed. @param {{at: string}} props */
export function Fault({ at }) {
  const words = faults.value[at];
  return html`<div role="alert" class="fault-place">${words && html`<p class="fault"><${Icon} name="look" /><span>${words}</span>
    <button type="button" class="icon-button" aria-label="Dismiss" onClick=${() => clearFault(at)}><${Icon} name="close" /></button></p>`}</div>`;
}

/** @param {{look: string, icon: string, label: string, act: () => Promise<unknown>, at: string, hint?: string, answer?: 'yes' | 'no', disabled?: boolean}} props at: where its fault is said; answer: a key gives it; disabled: something has to be given first */
export function Act({ look, icon, label, act, at, hint, answer, disabled }) {
  const off = Boolean(disabled) || !live.value || asked.value !== '';
  const button = useRef(/** @type {HTMLElement | null} */ (null));
  // An order that was carried out may end the button. The focus goes to the heading of the page, and does not disappear with it.
  useLayoutEffect(() => () => { if (button.current && button.current === document.activeElement) /** @type {HTMLElement | null} */ (document.querySelector('#now-title, #task-title, #channel-title, #crew-title, #session-title, #inbox-title, #hosts-title'))?.focus(); }, []);
  return html`<button type="button" ref=${button} class="order order-${look}" title=${hint} data-answer=${answer} aria-disabled=${off ? 'true' : undefined} aria-busy=${asked.value === at ? 'true' : undefined}
    onClick=${() => { if (!off) void act(); }}><${Icon} name=${icon} /><span>${label}</span></button>`;
}
