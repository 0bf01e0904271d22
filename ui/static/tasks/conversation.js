// The conversation of a task: what was asked, what its agent says, and what the checks said.

import * as api from '../shell/api.js';
import { span } from '../shell/format.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { cell } from '../agents/state.js';
import { Facts } from '../agents/facts.js';
import { Tape } from '../agents/outputtab.js';
import { step } from '../runs/state.js';
import { Mark } from '../runs/list.js';
import { lines, plain } from '../shell/text.js';
import { changes } from './state.js';
import { spot } from '../shell/router.js';
import { BASES } from './words.js';

/** Lines of the task's text that are shown at once. */
const TEXT_LINES = 6;
/** Changes of the work that are read for its sessions. */
const PAST_TAIL = 500;

/** The sessions of the work, the oldest first. @param {string} run @param {string} newest */
function useSessions(run, newest) {
  const all = useSignal(/** @type {string[]} */ ([]));
  useEffect(() => {
    let gone = false;
    api.journal({ entity: `run/${run}/work`, tail: PAST_TAIL }).then(({ changes: list }) => {
      if (!gone) all.value = [...new Set((list ?? []).map((ch) => ch.data?.session?.id).filter((id) => typeof id === 'string'))];
    }, () => { /* the newest one is known */ });
    return () => { gone = true; };
  }, [run, newest]);
  return newest && !all.value.includes(newest) ? [...all.value, newest] : all.value;
}

/** @param {{text: string}} props */
function Words({ text }) {
  const whole = useSignal(false);
  const all = text.split('\n');
  return html`<div class="task-text"><p>${lines(whole.value ? text : all.slice(0, TEXT_LINES).join('\n'))}</p>
    ${all.length > TEXT_LINES && !whole.value && html`<button type="button" class="link" onClick=${() => { whole.value = true; }}>Show all ${all.length} lines</button>`}</div>`;
}

/** An image that was given with the task; a click shows it in full. @param {{task: string, name: string}} props */
function Picture({ task, name }) {
  const src = useSignal('');
  const wrong = useSignal('');
  const large = useSignal(false);
  useEffect(() => {
    let gone = false;
    api.taskImage(task, name).then((url) => { if (!gone) src.value = url; }, (err) => { if (!gone) wrong.value = err instanceof Error ? err.message : String(err); });
    return () => { gone = true; };
  }, [task, name]);
  if (wrong.value) return html`<li><code>${plain(name, 100)}</code> <span class="soft">${plain(wrong.value, 200)}</span></li>`;
  return html`<li><button type="button" class="task-picture" aria-expanded=${large.value ? 'true' : 'false'} aria-label="${large.value ? 'Make smaller' : 'Enlarge'}: ${plain(name, 100)}" onClick=${() => { large.value = !large.value; }}>${src.value && html`<img src=${src.value} alt=${plain(name, 100)} />`}</button><code>${plain(name, 100)}</code></li>`;
}

/** @param {{task: string, files: {name: string, image?: string}[]}} props */
function Attached({ task, files }) {
  const texts = files.filter((f) => !f.image);
  const pictures = files.filter((f) => f.image);
  return html`${texts.length > 0 && html`<p class="soft">Attached: ${texts.map((f, i) => html`${i > 0 ? ', ' : ''}<code key=${f.name}>${plain(f.name, 100)}</code>`)}</p>`}
    ${pictures.length > 0 && html`<ul class="task-pictures" aria-label="Attached images">${pictures.map((f) => html`<${Picture} key=${f.name} task=${task} name=${f.name} />`)}</ul>`}`;
}

const CHECKS = { passed: { label: 'passed', look: 'ok', mark: '\u2713' }, failed: { label: 'failed', look: 'failed', mark: '\u2715' }, not_run: { label: 'not run', look: 'pending', mark: '\u25cb' }, running: { label: 'running', look: 'live', mark: '\u25b6' } };

function Checks() {
  const list = changes.value?.checks ?? [];
  const running = step('check')?.value.status === 'RUNNING';
  return html`<section class="checks" aria-labelledby="checks-title"><h3 id="checks-title">Checks</h3>
    ${list.length === 0 ? html`<p class="soft">None are configured; <code>tasks.checks</code> in fairlead.yaml names commands that must pass.</p>` : html`<ul>${list.map((k, i) => html`<li key=${i}>
      <details open=${k.state === 'failed'}><summary><${Mark} look=${running ? CHECKS.running : CHECKS[k.state] ?? CHECKS.not_run} /><code>${plain(k.command, 200)}</code>${k.base && html`<span class="soft">${BASES}</span>`}${k.took_ms ? html`<span class="num soft">${k.took_ms < 1000 ? `${k.took_ms}ms` : span(k.took_ms)}</span>` : ''}</summary>
        <pre class="check-out" tabIndex=${0} role="region" aria-label="Output of the check">${lines(k.output || 'no output')}</pre></details></li>`)}</ul>`}
  </section>`;
}

/** @param {{run: import('../shell/api.js').RunView}} props */
export function Conversation({ run }) {
  const work = step('work')?.value;
  const newest = work?.session || work?.last_session || '';
  const sessions = useSessions(run.run_id, newest);
  const picked = useSignal('');
  const exec = cell(run.task?.agent ?? '')?.agent.value.driver === 'exec';
  const asSaid = useSignal(/** @type {boolean | null} */ (null));
  const hidden = useSignal(document.hidden);
  useEffect(() => {
    const see = () => { hidden.value = document.hidden; };
    document.addEventListener('visibilitychange', see);
    return () => document.removeEventListener('visibilitychange', see);
  }, []);
  const c = changes.value;
  const session = sessions.includes(picked.value) ? picked.value : newest || sessions.at(-1) || '';
  const raw = asSaid.value ?? exec;
  return html`<section class="task-conversation" aria-label="Conversation">
    <article class="task-said"><h3>Task</h3><${Words} text=${c?.text ?? run.task?.title ?? ''} />
      <${Attached} task=${run.run_id} files=${c?.attachments ?? []} /></article>
    ${(c?.requests ?? []).map((q) => html`<article key=${q.round} id=${`spot-request-${q.round}`} class="task-said task-you ${spot.value === `request-${q.round}` ? 'spot' : ''}"><h3>You asked <span class="soft">round ${q.round}</span></h3><${Words} text=${q.text} /></article>`)}
    <${Checks} />
    <section class="output" aria-labelledby="output-title"><div class="task-output-bar"><h3 id="output-title">${work?.session ? 'Output, live' : 'Output'}</h3>
      ${sessions.length > 1 && html`<label class="pick"><span class="hidden">Round</span><select value=${session} onChange=${(/** @type {any} */ e) => { picked.value = e.target.value === newest ? '' : e.target.value; }}>${sessions.map((id, i) => html`<option key=${id} value=${id}>Session ${i + 1} of ${sessions.length}</option>`)}</select></label>`}
      <span class="seg" role="group" aria-label="Form"><button type="button" aria-pressed=${raw ? 'true' : 'false'} onClick=${() => { asSaid.value = true; }}>As said</button><button type="button" aria-pressed=${raw ? 'false' : 'true'} onClick=${() => { asSaid.value = false; }}>Understood</button></span></div>
      ${session && !hidden.value ? html`<${raw ? Tape : Facts} key=${`${raw} ${session}`} session=${session} onFollow=${() => {}} />` : html`<p class="quiet-note">The agent has not begun.</p>`}</section>
  </section>`;
}
