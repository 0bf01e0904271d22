// One thing that needs a person, with its content and its action.

import * as api from '../shell/api.js';
import { OnHost } from '../hosts/onhost.js';
import { hostOf } from '../hosts/state.js';
import { brief } from '../shell/format.js';
import { html, useLayoutEffect, useRef, useSignal } from '../shell/lib.js';
import { seenUntil } from '../shell/connection.js';
import { plain } from '../shell/text.js';
import { batch } from '../shell/lib.js';
import { choose, go, showRun, showTask } from '../shell/router.js';
import { Mark } from '../runs/list.js';
import { Icon } from '../shell/icons.js';
import { AskBody } from './question.js';
import { StepBody, TaskBody } from './stepcard.js';
import { AgentBody, ConfigBody, LimitBody, RunBody } from './failure.js';
import { holdsUp, needLook, wants } from './words.js';

/** @typedef {import('../shell/api.js').InboxItem} InboxItem */

/** Cards of a short list that are open at first. The others are one line each, and open when they are chosen. */
const OPEN_MAX = 3;

/** @param {string} name */
const showAgent = (name) => batch(() => { go('agents'); choose(name); });

/** What the card is about, as a link. @param {{item: InboxItem}} props */
function Title({ item: i }) {
  if (i.question) return html`<button type="button" class="link" onClick=${() => showAgent(i.agent ?? '')}><bdi>${plain(i.agent, 80)}</bdi></button> <span>${wants(i.question)}</span>`;
  if (i.kind === 'failed') return html`<button type="button" class="link" onClick=${() => showAgent(i.agent ?? '')}><bdi>${plain(i.agent, 80)}</bdi></button> <span>gave up</span>`;
  if (i.kind === 'login' || i.kind === 'billing') return html`<button type="button" class="link" onClick=${() => showAgent(i.agent ?? '')}><bdi>${plain(i.agent, 80)}</bdi></button> <span>${i.kind === 'login' ? 'is not signed in' : 'has no credit or quota left'}</span>`;
  if (i.kind === 'limit') return i.run_id ? html`<button type="button" class="link" onClick=${() => showRun(i.run_id)}><bdi>${plain(i.workflow_name, 80)}</bdi></button> <span>is paused</span>` : html`<span>${plain(i.why, 160)}</span>`;
  if (i.kind === 'config') return html`<span>fairlead.yaml was changed</span>`;
  if (i.kind === 'branch') return html`<span>A branch lacks commits of a host that led before</span>`;
  if (i.kind === 'fetch') return html`<span><code>tasks.fetch</code> has stopped</span>`;
  if (i.task) return html`<button type="button" class="link" onClick=${() => showTask(i.run_id)}><bdi>${plain(i.task.title, 160) || 'untitled'}</bdi></button>`;
  return html`<button type="button" class="link" onClick=${() => showRun(i.run_id, i.step_id)}><bdi>${plain(i.step_id, 100)}</bdi></button> <span>of ${plain(i.workflow_name, 80)}</span>`;
}

/** @param {{item: InboxItem}} props */
function Where({ item: i }) {
  const q = i.question, holds = holdsUp(i);
  return html`<p class="need-where">
    ${q && html`<span><code>${plain(q.id, 40)}</code>${q.session_id && html` in <code>${plain(q.session_id, 60)}</code>`}</span>`}
    <${OnHost} name=${hostOf(q?.session_id)} />
    ${i.run_id && (q || i.task ? html`<span>${i.task && !q ? html`<code>${plain(i.run_id, 48)}</code> by ${plain(i.task.agent, 64)}` : html`<button type="button" class="link" onClick=${() => showRun(i.run_id, i.step_id)}>step ${plain(i.step_id, 64)} of <code>${plain(i.run_id, 48)}</code></button>`}</span>` : html`<span>run <code>${plain(i.run_id, 48)}</code>${i.kind === 'step' && i.agent ? `, prepared by ${plain(i.agent, 64)}` : ''}</span>`)}
    ${holds && html`<b class="need-holds">${holds}</b>`}</p>`;
}

/** @param {{item: InboxItem, id: string}} props */
function Body({ item: i, id }) {
  if (i.question) return html`<${AskBody} q=${i.question} id=${id} />`;
  switch (i.kind) {
    case 'failed': return html`<${AgentBody} item=${i} />`;
    case 'run': return html`<${RunBody} item=${i} />`;
    case 'limit': return html`<${LimitBody} item=${i} />`;
    case 'config': return html`<${ConfigBody} item=${i} />`;
    case 'login': case 'billing': case 'branch': case 'fetch': return html`<p class="need-why">${plain(i.why, 900)}</p>`;
    default: return i.task && !i.input_schema ? html`<${TaskBody} item=${i} id=${id} />` : html`<${StepBody} item=${i} id=${id} />`;
  }
}

/** @param {{item: InboxItem, index: number, short: boolean, left: (card: Element) => void}} props left: the card goes, and the focus is in it */
function Card({ item: i, index, short, left }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const folds = short && index >= OPEN_MAX;
  const opened = useSignal(!folds);
  const look = needLook(i);
  const id = `need-${index}`;
  const since = Date.parse(i.since);
  useLayoutEffect(() => () => { if (box.current?.contains(document.activeElement)) left(box.current); }, []);
  return html`<li class="inbox-item need-${look.look} ${i.question ? 'inbox-ask' : ''}" ref=${box}>
    <article class="need" tabIndex=${-1} aria-labelledby=${id} data-need=${i.kind} onFocus=${() => { opened.value = true; }}>
      <header class="inbox-head"><${Mark} look=${look} />
        <h3 id=${id}><${Title} item=${i} /></h3>
        ${Number.isFinite(since) && html`<span class="soft num inbox-since" title="since ${new Date(since).toLocaleString('en-GB')}">${brief(seenUntil.value + api.skew.ms - since)}</span>`}
        ${folds && html`<button type="button" class="icon-button need-toggle" aria-expanded=${opened.value ? 'true' : 'false'} aria-label=${opened.value ? 'Show less' : 'Show all'} onClick=${() => { opened.value = !opened.value; }}><${Icon} name=${opened.value ? 'open' : 'shut'} /></button>`}</header>
      <${Where} item=${i} />
      ${opened.value && html`<${Body} item=${i} id=${`${id}-body`} />`}
    </article></li>`;
}

/** Cards shown at a time. */
const SHOWN_MAX = 50;

/** All cards, the most urgent first. @param {{list: InboxItem[], title: string, short?: boolean}} props title: the id of the heading that gets the focus after the last card */
export function Cards({ list, title, short = false }) {
  const box = useRef(/** @type {HTMLElement | null} */ (null));
  const place = useRef(-1);
  // A card disappears with its answer. The focus goes to the card that takes its place.
  const left = (/** @type {Element} */ card) => { place.current = [...box.current?.children ?? []].indexOf(card); };
  useLayoutEffect(() => {
    const cards = /** @type {NodeListOf<HTMLElement> | undefined} */ (box.current?.querySelectorAll('.need'));
    if (place.current >= 0 && cards) (cards[Math.min(place.current, cards.length - 1)] ?? document.getElementById(title))?.focus();
    place.current = -1;
  });
  useLayoutEffect(() => () => { if (box.current?.contains(document.activeElement)) document.getElementById(title)?.focus(); }, []);
  return html`<ul class="inbox-list" ref=${box}>${list.slice(0, SHOWN_MAX).map((i, n) => html`<${Card} key=${i.id} item=${i} index=${n} short=${short} left=${left} />`)}</ul>
    ${list.length > SHOWN_MAX && html`<p class="quiet-note">and ${list.length - SHOWN_MAX} more, shown as these are answered</p>`}`;
}
