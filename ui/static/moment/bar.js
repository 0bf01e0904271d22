// The bar below the masthead with which one looks back: a slider over the journal, and the change that was the last then.

import { changeActor, changeLine } from '../history/words.js';
import { asOf, clockNow } from '../shell/connection.js';
import { ago, clock, count } from '../shell/format.js';
import { Icon } from '../shell/icons.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { backToNow, drag, last, looking, newest, show, showTime, step, trouble } from './state.js';
import { fieldTime } from './words.js';

/** The time of the moment, to be changed. */
function Time() {
  const change = last.value;
  const at = change ? Date.parse(change.time) : NaN;
  const typed = useSignal('');
  useEffect(() => { typed.value = fieldTime(at); }, [at]);
  const go = (/** @type {Event} */ e) => {
    e.preventDefault();
    const time = new Date(typed.value);
    if (!Number.isNaN(time.getTime())) void showTime(time);
  };
  return html`<form class="moment-time" onSubmit=${go}>
    <label><span class="hidden">Show the page as of this time</span><input type="datetime-local" step="1" value=${typed.value} onInput=${(/** @type {any} */ e) => { typed.value = e.target.value; }} /></label>
    <button type="submit" class="plain-button">Go</button></form>`;
}

export function MomentBar() {
  if (!looking.value) return null;
  const seq = asOf.value;
  const change = last.value;
  const at = change ? Date.parse(change.time) : NaN;
  const words = change ? `${changeLine(change)} (${changeActor(change)})` : 'Reading the journal\u2026';
  return html`<section class="moment" aria-label="An earlier moment">
    <p class="moment-words" aria-live="polite"><b>As it was ${change ? html`at <time class="num" dateTime=${change.time}>${clock(at)}</time>, ${ago(clockNow() - at)}` : '\u2026'}.</b>${' '}
      <span class="moment-change" title=${words}>${words}</span></p>
    <div class="moment-slide">
      <button type="button" class="icon-button" aria-label="One change earlier ([)" title="One change earlier ([)" aria-disabled=${seq <= 1 ? 'true' : undefined} onClick=${() => step(-1)}><${Icon} name="back" /></button>
      <input type="range" min="1" max=${newest.value || 1} value=${seq} aria-label="Change of the journal" aria-valuetext=${`change ${seq} of ${newest.value}`}
        onInput=${(/** @type {any} */ e) => drag(Number(e.target.value))} onChange=${(/** @type {any} */ e) => show(Number(e.target.value))} />
      <button type="button" class="icon-button" aria-label="One change later (])" title="One change later (])" aria-disabled=${seq >= newest.value ? 'true' : undefined} onClick=${() => step(1)}><${Icon} name="forward" /></button>
      <span class="num soft moment-place">${count(seq)} of ${count(newest.value)}</span></div>
    <div class="moment-side"><${Time} /><button type="button" class="order order-primary" onClick=${backToNow}><span>Back to now</span></button></div>
    ${trouble.value && html`<p class="fault" role="alert">${trouble.value}</p>`}
  </section>`;
}
