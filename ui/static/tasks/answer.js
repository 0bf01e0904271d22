// The answer to a task: comments and a text go back to the agent, or what was shown lands.

import { html, useSignal } from '../shell/lib.js';
import { plain } from '../shell/text.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';
import { dialog } from '../shell/router.js';
import { keyOf, mergeTask, requestTask, resumeTask, undoTask } from './actions.js';
import { Governs, allowed } from './governs.js';
import { changes, drafts, fresh, scope } from './state.js';
import { askedAgain, checked, checkedOut, isLive, landing, nothingNew, some, unlanded } from './words.js';

/** Longest text in characters; the server accepts no longer one. */
const TEXT_MAX = 60_000;

/** What lands, and how. @param {{c: import('../shell/api.js').TaskChanges, n: number}} props n: comments that are not sent */
const Outcome = ({ c, n }) => html`<p class="soft answer-what">${checked(c.checks)} Approval ${landing(c.land, plain(c.base, 100))}<span>: exactly tree <code>${plain(c.tree ?? '', 64).slice(0, 12)}</code></span>.${scope.value !== 'all' ? ' You look at a part of it; approval is for all of it.' : ''}${n > 0 ? ` It does not send the ${n === 1 ? 'comment' : 'comments'}.` : ''}</p>`;

/** @param {{run: import('../shell/api.js').RunView}} props */
export function TaskAnswer({ run }) {
  const id = run.run_id, t = /** @type {import('../shell/api.js').TaskView} */ (run.task);
  const text = useSignal(drafts.get(id) ?? '');
  const yes = useSignal('');
  const c = changes.value;
  const n = fresh.value.length;
  const write = (/** @type {string} */ words) => { text.value = words; drafts.set(id, words); };
  const drop = html`<button type="button" class="order order-quiet answer-drop" onClick=${() => { dialog.value = 'drop-task'; }}><${Icon} name="cross" /><span>Drop</span></button>`;
  if (t.status === 'done') {
    return html`<div class="task-answer"><p><b>Landed on ${plain(t.base, 100)}</b>${t.landed_commit ? html` as <code>${plain(t.landed_commit, 40).slice(0, 10)}</code>` : ''}.</p>
      ${t.landed_commit && !t.pull_request && html`<div class="answer-foot"><${Act} at=${keyOf('undo', id)} look="plain" icon="back" label="Take back" act=${() => undoTask(id)} /></div><${Fault} at=${keyOf('undo', id)} />`}</div>`;
  }
  if (t.status === 'dropped') return html`<div class="task-answer"><p><b>Dropped.</b> <span class="soft">What was written stays under <code>refs/fairlead/tasks/${plain(id, 48)}</code>.</span></p></div>`;
  if (t.failed_step) { // also a task that needs room to land
    const again = t.failed_step === 'land';
    return html`<div class="task-answer"><p class="worry-box"><${Icon} name="look" /><span><b>${again ? 'It did not land.' : `${plain(t.failed_step || 'A step', 64)} failed.`}</b> ${plain(t.why ?? '', 600)}</span></p>
      <div class="answer-foot"><${Act} at=${keyOf(again ? 'merge' : 'resume', id)} look="primary" icon="play" label=${again ? 'Land again' : 'Continue'} act=${() => (again ? mergeTask(id, '') : resumeTask(id))} />${drop}</div>
      <${Fault} at=${keyOf(again ? 'merge' : 'resume', id)} /></div>`;
  }
  if (!c?.shown) {
    return html`<div class="task-answer"><p class="soft">${t.status === 'landing' ? `Landing on ${plain(t.base, 100)}\u2026${t.why ? ` ${plain(t.why, 300)}.` : ''}` : isLive(t.status) ? `${t.why ? plain(t.why, 300) + '. ' : ''}You can comment now, and send it when the task waits for you.` : plain(t.why ?? '', 300)}${n > 0 ? ` ${some(n, 'comment', 'comments')} not sent.` : ''}</p>
      <div class="answer-foot">${t.status !== 'landing' && drop}</div></div>`;
  }
  const more = n > 0 || text.value.trim() !== '';
  const back = unlanded(t);
  const none = nothingNew(t);
  const send = async () => {
    if (!more && !back) { document.getElementById('task-words')?.focus(); return; }
    if (await requestTask(id, text.value.trim(), c.shown ?? '')) write('');
  };
  return html`<form class="task-answer" onSubmit=${(/** @type {Event} */ e) => e.preventDefault()} aria-label="Your answer">
    <div class="answer-row"><div class="entry"><label for="task-words">${n > 0 ? `${some(n, 'comment', 'comments')}, and besides` : 'What should change'}</label>
      <textarea id="task-words" rows="2" maxlength=${TEXT_MAX} placeholder=${n > 0 ? 'optional' : 'or comment on a line of the changes'} value=${text.value} onInput=${(/** @type {any} */ e) => write(e.target.value)}></textarea></div>
    <div class="answer-foot">
      <${Act} at=${keyOf('request', id)} look=${more || back || none ? 'primary' : 'plain'} icon="send" label=${back ? 'Send it back' : 'Request changes'} act=${send} />
      <${Act} at=${keyOf('merge', id)} look=${more || back || none ? 'plain' : 'approve'} icon="check" label="Approve and land" disabled=${!allowed(c, yes.value)} act=${() => mergeTask(id, c.tree ?? '', yes.value)} />
      ${drop}</div></div>
    ${t.checkout && html`<p class="worry-box"><${Icon} name="look" /><span>${checkedOut(t)}</span></p>`}
    ${t.why && html`<p class="worry-box"><${Icon} name="look" /><span>${askedAgain(t)}</span></p>`}
    <${Governs} c=${c} yes=${yes} />
    <${Outcome} c=${c} n=${n} />
    <${Fault} at=${keyOf('request', id)} /><${Fault} at=${keyOf('merge', id)} />
  </form>`;
}
