// A step that waits for an answer, and a task that waits for a review: what was made, what the checks
// say, what happens then.

import { size } from '../shell/format.js';
import { html, useEffect, useRef, useSignal } from '../shell/lib.js';
import { lines, plain } from '../shell/text.js';
import { showTask } from '../shell/router.js';
import { focusOn, useFocus } from '../shell/focus.js';
import { Act, Fault } from '../shell/orderbutton.js';
import { Icon } from '../shell/icons.js';
import { Mark } from '../runs/list.js';
import { stepLook } from '../runs/words.js';
import { keyOf, mergeTask, requestTask } from '../tasks/actions.js';
import { Governs, allowed } from '../tasks/governs.js';
import { BASES, askedAgain, checkedOut, fileNotes, landing, nothingNew, some, unlanded } from '../tasks/words.js';
import { Answer } from './approval.js';
import { changesOf, forgetChanges } from './content.js';
import { block, outcomes } from './words.js';

/** @typedef {import('../shell/api.js').InboxItem} InboxItem */

const LOGS_MAX = 6, ARTIFACTS_MAX = 12, METRICS_MAX = 12, FILES_MAX = 8, CHECKS_MAX = 12;
/** Longest request in characters; the server accepts no longer one. */
const TEXT_MAX = 60_000;

/** @param {{metrics?: Record<string, string>}} props */
const Metrics = ({ metrics }) => html`${Object.entries(metrics ?? {}).slice(0, METRICS_MAX).map(([k, v]) => html`<span key=${k} class="need-metric">${plain(k, 60)} <b class="num">${plain(v, 80)}</b></span>`)}`;

/** @param {{list: string[]}} props */
const Logs = ({ list }) => (list.length === 0 ? null : html`<ul class="texts soft">${list.slice(-LOGS_MAX).map((l, n) => html`<li key=${n}>${plain(l, 300)}</li>`)}</ul>`);

/** An artifact, as an agent wrote it. @param {{file: import('../shell/api.js').InboxFile, first: boolean}} props */
const Artifact = ({ file: f, first }) => html`<details class="need-file" open=${first && !!f.text}><summary><code>${plain(f.name, 200)}</code> <span class="soft num">${f.why ? plain(f.why, 120) : size(f.bytes)}</span></summary>
  ${f.text && html`<pre class="ask-call">${block(f.text)}${f.cut ? `\n\u2026 the file has ${size(f.bytes)}` : ''}</pre>`}</details>`;

/** Says that what is asked was changed while a person looked. @param {{shown: string}} props */
function Renewed({ shown }) {
  const first = useRef(shown);
  const renewed = useSignal(false);
  useEffect(() => { if (first.current !== shown) { first.current = shown; renewed.value = true; } }, [shown]);
  return renewed.value && html`<p class="worry-box" role="status"><${Icon} name="look" /><span>It was changed while you looked. This is what is asked now.</span></p>`;
}

/** @param {{item: InboxItem, id: string}} props */
export function StepBody({ item: i, id }) {
  const files = i.files ?? [], made = i.made ?? [], { yes, no } = outcomes(i);
  const named = new Set(files.map((f) => f.name));
  const artifacts = (i.artifacts ?? []).filter((a) => !named.has(a));
  return html`<${Renewed} shown=${i.shown ?? ''} />
    ${made.length > 0 && html`<ul class="need-made" aria-label="What was done before">${made.map((m) => html`<li key=${m.step_id}><${Mark} look=${{ ...stepLook(m.status), label: plain(m.step_id, 64) }} /><span class="hidden">${plain(stepLook(m.status).label, 40)}</span><${Metrics} metrics=${m.metrics} /><${Logs} list=${m.logs ?? []} /></li>`)}</ul>`}
    ${i.metrics && html`<p class="need-metrics"><${Metrics} metrics=${i.metrics} /></p>`}
    ${files.map((f, n) => html`<${Artifact} key=${f.name} file=${f} first=${n === 0} />`)}
    ${artifacts.length > 0 && html`<ul class="texts">${artifacts.slice(0, ARTIFACTS_MAX).map((a, n) => html`<li key=${n}><code>${plain(a, 300)}</code></li>`)}${artifacts.length > ARTIFACTS_MAX && html`<li class="soft">and ${artifacts.length - ARTIFACTS_MAX} more</li>`}</ul>`}
    <${Logs} list=${i.logs ?? []} />
    <p class="need-then soft">Approved: ${yes}. Rejected: ${no}. Without an answer it waits.</p>
    <${Answer} run=${i.run_id} step=${i.step_id} schema=${i.input_schema} bad=${i.bad_input} path=${i.manual_input_path} shown=${i.shown} card id=${`${id}-answer`} />`;
}

/** @param {{c: import('../shell/api.js').TaskChanges}} props */
function Diff({ c }) {
  const added = c.files.reduce((n, f) => n + f.added, 0), deleted = c.files.reduce((n, f) => n + f.deleted, 0);
  const more = c.files.length - FILES_MAX + (c.more_files ?? 0);
  return html`<div class="need-diff"><p><b>${some(c.files.length + (c.more_files ?? 0), 'file', 'files')} changed</b> <span class="num"><span class="diff-added">+${added}</span> <span class="diff-deleted">\u2212${deleted}</span></span></p>
    <ul>${c.files.slice(0, FILES_MAX).map((f, n) => html`<li key=${n}><code>${plain(f.name, 160)}</code>${fileNotes(f).map((w) => html`<span key=${w} class="soft">${w}</span>`)}<span class="num"><span class="diff-added">+${f.added}</span> <span class="diff-deleted">\u2212${f.deleted}</span></span></li>`)}
      ${more > 0 && html`<li class="soft">and ${more} more</li>`}</ul></div>`;
}

/** @type {Record<string, import('../runs/words.js').Look>} */
const CHECKS = { passed: stepLook('COMPLETED'), failed: stepLook('FAILED'), not_run: stepLook('SKIPPED') };
const CHECK_WORDS = { passed: 'passed', failed: 'failed', not_run: 'not run' };

/** @param {{checks: import('../shell/api.js').TaskCheck[]}} props */
const Checks = ({ checks }) => (checks.length === 0 ? html`<p class="soft">No checks are configured for tasks.</p>` : html`<ul class="need-checks" aria-label="Checks">${checks.slice(0, CHECKS_MAX).map((k, n) => html`<li key=${n}><${Mark} look=${{ ...(CHECKS[k.state] ?? CHECKS.not_run), label: CHECK_WORDS[k.state] ?? plain(k.state, 20) }} /><code>${plain(k.command, 160)}</code>${k.base && html`<span class="soft">${BASES}</span>`}
    ${k.state === 'failed' && k.output && html`<pre class="check-out">${block(k.output)}</pre>`}</li>`)}</ul>`);

/** @param {{item: InboxItem, id: string}} props */
export function TaskBody({ item: i, id }) {
  const task = i.run_id;
  const again = useSignal(0);
  const text = useSignal('');
  const yes = useSignal('');
  const writing = useSignal(false);
  const words = useFocus(`${id}-words`);
  const version = `${i.id} ${again.value}`;
  const { value: c, wrong } = changesOf(task, version).value;
  const back = i.task ? unlanded(i.task) : false;
  const reread = () => { forgetChanges(task, version); again.value++; };
  const land = async () => { if (!await mergeTask(task, c?.tree ?? '', yes.peek())) reread(); };
  const request = async () => {
    if (!back && (!writing.peek() || !text.value.trim())) { writing.value = true; focusOn(`${id}-words`); return; }
    if (!await requestTask(task, text.value.trim(), c?.shown ?? '')) reread();
  };
  if (!c) return html`<p class="soft">${wrong ? `The changes cannot be shown: ${plain(wrong, 300)}` : 'Reading the changes\u2026'}</p><div class="answer-foot"><button type="button" class="order order-plain" onClick=${() => showTask(task)}><span>Open the task</span><${Icon} name="shut" /></button></div>`;
  const last = c.requests[c.requests.length - 1];
  const none = i.task ? nothingNew(i.task) : '';
  return html`<${Renewed} shown=${c.shown ?? ''} />
    ${c.text.trim().includes('\n') && html`<details class="need-file"><summary>The whole task</summary><pre class="ask-words">${block(c.text)}</pre></details>`}
    ${last && html`<p class="need-asked"><span class="soft">You asked in round ${last.round}:</span> ${lines(last.text, 300)}</p>`}
    ${i.task?.checkout && html`<p class="worry-box"><${Icon} name="look" /><span>${checkedOut(i.task)}</span></p>`}
    ${i.task?.why && html`<p class="worry-box"><${Icon} name="look" /><span>${askedAgain(i.task)}</span></p>`}
    ${i.bad_input && html`<p class="worry-box"><${Icon} name="look" /><span>${plain(i.bad_input, 600)}</span></p>`}
    <${Governs} c=${c} yes=${yes} />
    <${Diff} c=${c} />
    <${Checks} checks=${c.checks} />
    ${c.shown && html`<p class="need-then soft">Approval ${landing(c.land, plain(c.base, 100))}: exactly tree <code>${plain(c.tree ?? '', 64).slice(0, 12)}</code>, as shown here. Without an answer it waits.</p>
      <form onSubmit=${(/** @type {Event} */ e) => e.preventDefault()} class="ask-form" aria-label="Your answer">
      ${writing.value && html`<div class="entry"><label for="${id}-words">What should change</label><textarea ref=${words} id="${id}-words" rows="3" maxlength=${TEXT_MAX} value=${text.value} onInput=${(/** @type {any} */ e) => { text.value = e.target.value; }}></textarea></div>`}
      <div class="answer-foot">
        <${Act} at=${keyOf('merge', task)} look=${none ? 'plain' : 'approve'} icon="check" label="Approve and land" answer="yes" disabled=${!allowed(c, yes.value)} act=${land} />
        <${Act} at=${keyOf('request', task)} look=${none ? 'primary' : text.value.trim() ? 'plain' : 'quiet'} icon="send" label=${back ? 'Send it back' : 'Request changes'} answer="no" act=${request} />
        <button type="button" class="order order-quiet" onClick=${() => showTask(task)}><span>All changes</span><${Icon} name="shut" /></button></div></form>`}
    <${Fault} at=${keyOf('merge', task)} /><${Fault} at=${keyOf('request', task)} />`;
}
