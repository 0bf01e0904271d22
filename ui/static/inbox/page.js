// Everything that needs a person, with the form for each answer, and the answers that are saved.

import { html } from '../shell/lib.js';
import { runsKnown } from '../runs/state.js';
import { Cards } from './card.js';
import { needs } from './state.js';
import { SavedAnswers } from './savedanswers.js';

export function InboxPage() {
  const list = needs.value;
  return html`<div class="inbox"><h2 id="inbox-title" tabIndex=${-1}>Inbox</h2>
    ${!runsKnown.value ? html`<p class="quiet-note">Loading\u2026</p>`
      : list.length === 0 ? html`<p class="quiet-note">Nothing waits for you. A step or an agent that needs a person appears here.</p>`
      : html`<${Cards} list=${list} title="inbox-title" />`}
    <${SavedAnswers} />
  </div>`;
}
