// Everything that needs a person, with the form for each answer, and the answers that are saved.

import { html, useEffect } from '../shell/lib.js';
import { runsKnown } from '../runs/state.js';
import { plain } from '../shell/text.js';
import { askedID } from '../shell/router.js';
import { Cards } from './card.js';
import { Receivers } from './receivers.js';
import { needs } from './state.js';
import { SavedAnswers } from './savedanswers.js';

export function InboxPage() {
  const list = needs.value;
  // A link of a notice names a question: its card gets the focus once it is there.
  const wanted = askedID.value, at = list.findIndex((i) => i.question?.id === wanted);
  useEffect(() => {
    if (!wanted || at < 0) return;
    const card = /** @type {HTMLElement | null | undefined} */ (document.getElementById(`need-${at}`)?.closest('article'));
    card?.scrollIntoView({ block: 'center' });
    card?.focus();
  }, [wanted, at >= 0]);
  return html`<div class="inbox"><h2 id="inbox-title" tabIndex=${-1}>Inbox</h2>
    ${wanted && runsKnown.value && at < 0 && html`<p class="quiet-note" role="status"><code>${plain(wanted, 40)}</code> does not wait any more: it was answered, withdrawn, or its time ran out.</p>`}
    ${!runsKnown.value ? html`<p class="quiet-note">Loading\u2026</p>`
      : list.length === 0 ? html`<p class="quiet-note">Nothing waits for you. A step or an agent that needs a person appears here.</p>`
      : html`<${Cards} list=${list} title="inbox-title" />`}
    <${SavedAnswers} /><${Receivers} />
  </div>`;
}
