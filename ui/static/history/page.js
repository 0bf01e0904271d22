// The past of the whole team: its page, and the last changes before an earlier moment.

import * as api from '../shell/api.js';
import { answers, asOf } from '../shell/connection.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { isReport } from '../agents/state.js';
import { ChangeRow, Changes } from './changes.js';
import { trail, trailKnown } from './state.js';
import { isDetail, teamLink } from './words.js';

/** Changes shown before a moment. */
const BEFORE = 12;

export function HistoryPage() {
  return html`<div class="history history-page"><h2 id="history-title" tabIndex=${-1}>History</h2>
    <${Changes} trail=${trail.value} known=${trailKnown.value} older=${trail.value[0]?.seq > 1} /></div>`;
}

/** What had happened last at the moment that is shown. */
export function JustBefore() {
  const list = useSignal(/** @type {api.Change[]} */ ([]));
  useEffect(() => {
    if (!answers.value) return undefined;
    let gone = false;
    api.journal({ tail: 5 * BEFORE }).then(({ changes }) => { if (!gone) list.value = changes ?? []; }, () => { /* the bar says why */ });
    return () => { gone = true; };
  }, [answers.value, asOf.value]);
  return html`<section class="now-part" aria-labelledby="now-before"><header><h3 id="now-before">Just before</h3><a class="link now-more" href=${teamLink('')}>History</a></header>
    <ol class="change-list">${list.value.filter((ch) => !isReport(ch) && !isDetail(ch)).slice(-BEFORE).reverse().map((ch) => html`<${ChangeRow} key=${ch.seq} change=${ch} whole />`)}</ol></section>`;
}
