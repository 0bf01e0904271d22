// Refusals and failures with the server's reason, until they are dismissed.

import { dismiss } from '../agents/actions.js';
import { html } from './lib.js';
import { notes, spoken } from './router.js';
import { Icon } from './icons.js';

export const Notes = () => html`
  <div class="notes" role="alert">${notes.value.map((n) => html`<div key=${n.id} class="note note-${n.kind}">
    <div><p class="note-title">${n.title}</p><p>${n.text}</p>${n.more && html`<p class="soft">${n.more}</p>`}</div>
    <button type="button" class="icon-button" aria-label="Dismiss" onClick=${() => dismiss(n.id)}><${Icon} name="close" /></button></div>`)}</div>
  <p class="hidden" role="status">${spoken.value}</p>`;
