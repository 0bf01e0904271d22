// What failed: an agent that gave up, a run or a task that failed, a limit that is used up. Each with the
// last lines of its error and what can be done.

import { html } from '../shell/lib.js';
import { lines, plain } from '../shell/text.js';
import { batch } from '../shell/lib.js';
import { choose, go, showRun, showTab, showTask } from '../shell/router.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';
import { keyOf, mergeTask, resumeTask } from '../tasks/actions.js';
import { confirmConfig, confirmKey, orderAgent, orderKey, resumeFailed, resumeKey } from './actions.js';
import { lastWords } from './content.js';
import { putAway } from './state.js';
import { lastLines } from './words.js';

/** @typedef {import('../shell/api.js').InboxItem} InboxItem */

const LINES_MAX = 8;

/** @param {{lines: string}} props */
const Lines = ({ lines }) => lines && html`<pre class="check-out need-error" tabIndex=${0} aria-label="The last lines">${lines}</pre>`;

/** The last lines of a session's output. @param {{session?: string}} props */
function Said({ session }) {
  if (!session) return null;
  const { value } = lastWords(session, LINES_MAX).value;
  return value && value.length > 0 ? html`<${Lines} lines=${value.join('\n')} />` : null;
}

/** @param {{item: InboxItem}} props */
const Away = ({ item }) => html`<button type="button" class="order order-quiet" data-answer="no" title="This browser does not show it again" onClick=${() => putAway(item)}><${Icon} name="close" /><span>Put away</span></button>`;

/** @param {{item: InboxItem}} props */
export function AgentBody({ item: i }) {
  const name = i.agent ?? '';
  return html`${i.why && html`<p class="need-why">${plain(i.why, 400)}</p>`}
    <${Said} session=${i.session_id} />
    <div class="answer-foot">
      <${Act} at=${orderKey(name)} look="approve" icon="play" label="Start again" answer="yes" act=${() => orderAgent(name, 'start')} />
      <button type="button" class="order order-quiet" onClick=${() => batch(() => { go('agents'); choose(name); showTab('evidence'); })}><span>Evidence</span><${Icon} name="shut" /></button>
      <${Act} at=${orderKey(name)} look="quiet" icon="stop" label="Leave it stopped" answer="no" act=${() => orderAgent(name, 'stop')} /></div>
    <${Fault} at=${orderKey(name)} />`;
}

/** @param {{item: InboxItem}} props */
export function RunBody({ item: i }) {
  const id = i.run_id;
  const error = lastLines(i.error ?? '', LINES_MAX);
  const lands = i.task?.failed_step === 'land';
  const at = i.task ? keyOf(lands ? 'merge' : 'resume', id) : resumeKey(id);
  const act = () => (lands ? mergeTask(id, '') : i.task ? resumeTask(id) : resumeFailed(id));
  return html`<p class="need-why">${lands ? html`It was approved, and could not land on <code>${plain(i.task?.base, 100)}</code>.` : html`Step <b>${plain(i.step_id, 64)}</b> failed.`}</p>
    ${error ? html`<${Lines} lines=${error} />` : html`<${Said} session=${i.session_id} />`}
    <div class="answer-foot">
      <${Act} at=${at} look="approve" icon="play" label=${lands ? 'Land again' : 'Try again'} hint=${lands ? '' : 'From the step that failed; what was completed stays completed'} answer="yes" act=${act} />
      <button type="button" class="order order-quiet" onClick=${() => (i.task ? showTask(id) : showRun(id, i.step_id))}><span>${i.task ? 'Open the task' : 'Open the step'}</span><${Icon} name="shut" /></button>
      <${Away} item=${i} /></div>
    <${Fault} at=${at} />`;
}

/** A change of fairlead.yaml that no person has confirmed. @param {{item: InboxItem}} props */
export function ConfigBody({ item: i }) {
  const u = i.unconfirmed;
  if (!u) return null;
  return html`<p class="need-why">${plain(i.why, 400)}</p>
    <p class="soft">${(u.files ?? []).map((f) => plain(f, 200)).join(', ')}</p>
    <pre class="check-out" tabIndex=${0} aria-label="What was changed">${lines(u.diff)}</pre>
    <div class="answer-foot"><${Act} at=${confirmKey(u.governing)} look="approve" icon="check" label="Confirm the change" answer="yes" act=${() => confirmConfig(u.governing)} /></div>
    <${Fault} at=${confirmKey(u.governing)} />`;
}

/** @param {{item: InboxItem}} props */
export function LimitBody({ item: i }) {
  return html`${i.run_id && html`<p class="need-why">${plain(i.why, 300)}</p>`}
    <p class="soft">It ends with the day${i.run_id ? '' : ' (UTC)'}. To go on now, raise it${i.run_id ? html`: <code>fairlead run resume ${plain(i.run_id, 48)} --daily-cost-limit USD</code>` : html` under <code>limits</code> in <code>fairlead.yaml</code>, and run <code>fairlead reload</code>`}.</p>
    <div class="answer-foot"><button type="button" class="order order-quiet" onClick=${() => go('usage')}><span>Usage</span><${Icon} name="shut" /></button><${Away} item=${i} /></div>`;
}
