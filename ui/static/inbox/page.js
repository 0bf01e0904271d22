// Everything that needs a person, with the form for each answer, and the answers that are saved.

import * as api from '../shell/api.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { runsKnown } from '../runs/state.js';
import { plain } from '../shell/text.js';
import { askedID } from '../shell/router.js';
import { Cards } from './card.js';
import { Receivers } from './receivers.js';
import { needs } from './state.js';
import { answerWords } from './words.js';
import { SavedAnswers } from './savedanswers.js';

/** A question that a link names, and that waits no more. @param {{id: string}} props */
function Answered({ id }) {
  const q = useSignal(/** @type {api.Asked | null} */ (null));
  useEffect(() => {
    if (/^q\d+$/.test(id)) api.question(id).then((is) => { q.value = is; }, () => { /* only the newest ones are kept */ });
  }, [id]);
  const is = q.value;
  return html`<div class="answered" role="status"><p class="quiet-note"><code>${plain(id, 40)}</code> does not wait any more: it was answered, withdrawn, or its time ran out.</p>
    ${is && html`<p><b><bdi>${plain(is.agent, 80)}</bdi></b> asked: ${plain(is.what, 600)}</p>
      <p class="soft">${answerWords(is)}</p>`}</div>`;
}

export function InboxPage() {
  const list = needs.value;
  // A link of a notice names a question: its card gets the focus once it is there.
  const wanted = askedID.value, at = list.findIndex((i) => i.question?.id === wanted || i.id === wanted);
  useEffect(() => {
    if (!wanted || at < 0) return;
    const card = /** @type {HTMLElement | null | undefined} */ (document.getElementById(`need-${at}`)?.closest('article'));
    card?.scrollIntoView({ block: 'center' });
    card?.focus();
  }, [wanted, at >= 0]);
  return html`<div class="inbox"><h2 id="inbox-title" tabIndex=${-1}>Inbox</h2>
    ${/^[^s]/.test(wanted) && runsKnown.value && at < 0 && html`<${Answered} key=${wanted} id=${wanted} />`}
    ${!runsKnown.value ? html`<p class="quiet-note">Loading\u2026</p>`
      : list.length === 0 ? html`<p class="quiet-note">Nothing waits for you. A step or an agent that needs a person appears here.</p>`
      : html`<${Cards} list=${list} title="inbox-title" />`}
    <${SavedAnswers} /><${Receivers} />
  </div>`;
}
