// Everything that waits for a person: approvals of steps and questions of agents, with the form
// for each answer.

import * as api from '../shell/api.js';
import { span } from '../shell/format.js';
import { html, useEffect } from '../shell/lib.js';
import { inbox, runs, runsKnown } from '../runs/state.js';
import { seenUntil } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { askedID, choose, go, showRun, showTask } from '../shell/router.js';
import { Icon } from '../shell/icons.js';
import { Answer } from './approval.js';
import { AskItem } from './question.js';
import { Receivers } from './receivers.js';
import { SavedAnswers } from './savedanswers.js';

/** Questions shown at a time. */
const SHOWN_MAX = 50;
const ARTIFACTS_MAX = 12;
const LOGS_MAX = 6;

/** @param {{item: import('../shell/api.js').InboxItem, index: number}} props */
function Item({ item: i, index }) {
  const artifacts = i.artifacts ?? [], logs = i.logs ?? [];
  const since = Date.parse(i.since);
  const task = i.input_schema ? undefined : runs.value.find((r) => r.run_id === i.run_id)?.task;
  const open = () => (task ? showTask(i.run_id) : showRun(i.run_id, i.step_id));
  return html`<li class="inbox-item"><article aria-labelledby="inbox-${index}">
    <header class="inbox-head"><h3 id="inbox-${index}"><button type="button" class="link" onClick=${open}><bdi>${plain(task ? task.title : i.step_id, 100)}</bdi></button></h3>
      <span class="soft">${plain(i.workflow_name, 80)}, <code>${plain(i.run_id, 48)}</code></span>
      ${Number.isFinite(since) && html`<span class="soft num inbox-since">for ${span(seenUntil.value + api.skew.ms - since)}</span>`}</header>
    ${i.why && html`<p>${plain(i.why, 400)}</p>`}
    ${artifacts.length > 0 && !task && html`<ul class="texts">${artifacts.slice(0, ARTIFACTS_MAX).map((a, n) => html`<li key=${n}><code>${plain(a, 300)}</code></li>`)}${artifacts.length > ARTIFACTS_MAX && html`<li class="soft">and ${artifacts.length - ARTIFACTS_MAX} more</li>`}</ul>`}
    ${logs.length > 0 && html`<ul class="texts soft">${logs.slice(-LOGS_MAX).map((l, n) => html`<li key=${n}>${plain(l, 300)}</li>`)}</ul>`}
    ${task ? html`<div class="answer-foot"><button type="button" class="order order-start" onClick=${open}><${Icon} name="look" /><span>Look at the changes</span></button></div>`
      : html`<${Answer} run=${i.run_id} step=${i.step_id} schema=${i.input_schema} bad=${i.bad_input} path=${i.manual_input_path} id="inbox-${index}-answer" />`}
  </article></li>`;
}

/** An agent that gave up. @param {{item: import('../shell/api.js').InboxItem, index: number}} props */
function FailedItem({ item: i, index }) {
  const since = Date.parse(i.since), name = i.agent ?? '';
  return html`<li class="inbox-item"><article aria-labelledby="inbox-${index}">
    <header class="inbox-head"><h3 id="inbox-${index}"><button type="button" class="link" onClick=${() => { go('agents'); choose(name); }}><bdi>${plain(name, 80)}</bdi></button></h3>
      <span class="soft">gave up</span>
      ${Number.isFinite(since) && html`<span class="soft num inbox-since">for ${span(seenUntil.value + api.skew.ms - since)}</span>`}</header>
    ${i.why && html`<p>${plain(i.why, 400)}</p>`}
    <p class="soft">Start it again, or stop it to remove this entry.</p>
  </article></li>`;
}

export function InboxPage() {
  const list = inbox.value;
  // A link of a notice names a question: its card gets the focus once it is there.
  const wanted = askedID.value, at = list.findIndex((i) => i.question?.id === wanted);
  useEffect(() => {
    if (!wanted || at < 0) return;
    const title = document.getElementById(`inbox-${at}`);
    title?.scrollIntoView({ block: 'center' });
    title?.querySelector('button')?.focus();
  }, [wanted, at >= 0]);
  return html`<div class="inbox"><h2 id="inbox-title" tabIndex=${-1}>Inbox</h2>
    ${wanted && runsKnown.value && at < 0 && html`<p class="quiet-note" role="status"><code>${plain(wanted, 40)}</code> does not wait any more: it was answered, withdrawn, or its time ran out.</p>`}
    ${!runsKnown.value ? html`<p class="quiet-note">Loading\u2026</p>`
      : list.length === 0 ? html`<p class="quiet-note">Nothing waits for you. A step or an agent that needs a person appears here.</p>`
      : html`<ul class="inbox-list">${list.slice(0, SHOWN_MAX).map((i, n) => (i.kind === 'failed' ? html`<${FailedItem} key=${`failed/${i.agent}`} item=${i} index=${n} />` : i.question ? html`<${AskItem} key=${i.question.id} item=${i} q=${i.question} index=${n} />` : html`<${Item} key=${`${i.run_id}/${i.step_id}`} item=${i} index=${n} />`))}</ul>`}
    ${list.length > SHOWN_MAX && html`<p class="quiet-note">and ${list.length - SHOWN_MAX} more, shown as these are answered</p>`}
    <${SavedAnswers} /><${Receivers} />
  </div>`;
}
