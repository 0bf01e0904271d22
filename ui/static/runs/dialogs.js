// The dialogs that start, cancel or resume a run.

import * as api from '../shell/api.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { plural } from '../shell/format.js';
import { cancelRun, resumeRun, startRun } from './actions.js';
import { plain } from '../shell/text.js';
import { dialog, runID, stepID } from '../shell/router.js';
import { Sheet } from '../shell/dialogs.js';
import { Icon } from '../shell/icons.js';

const NOTE_MAX = 1000;
/** Faults of a workflow listed here; the command line lists all of them. */
const FAULTS_MAX = 60;

/** @typedef {{name: string, label: string, kind: 'text' | 'count' | 'money' | 'check' | 'choice', hint?: string, choices?: string[]}} Flag */

/** @type {Flag[]} */
const FLAGS = [
  { name: 'workflow', label: 'Workflow', kind: 'text', hint: 'Choose one, or type a path' },
  { name: 'unattended', label: 'Go on without people where the workflow asks for them', kind: 'check' },
];
/** @type {Flag[]} */
const MORE = [
  { name: 'run_id', label: 'Name of the run', kind: 'text', hint: 'one is made' },
  { name: 'repo', label: 'Repository', kind: 'text', hint: 'the one Fairlead runs in' },
  { name: 'start_at_step', label: 'Start at step', kind: 'text', hint: 'the first' },
  { name: 'wrapper', label: 'Wrapper', kind: 'text', hint: 'none: agents do the steps' },
  { name: 'max_attempts', label: 'Attempts per round', kind: 'count', hint: '2' },
  { name: 'max_iterations', label: 'Loop-backs per gate', kind: 'count', hint: '4' },
  { name: 'side_by_side', label: 'Steps side by side', kind: 'count', hint: 'as many as CPUs' },
  { name: 'gate_state_file', label: 'Gate state file', kind: 'text', hint: 'none: all gates are open' },
  { name: 'daily_cost_limit', label: 'USD a day', kind: 'money', hint: 'no limit' },
  { name: 'cost_limit_action', label: 'At that limit', kind: 'choice', choices: ['warn', 'pause', 'fail'] },
  { name: 'git_worktree', label: 'Work in a git worktree of its own', kind: 'check' },
];

/** @param {{flag: Flag, value: string | boolean, set: (v: string | boolean) => void}} props */
function Entry({ flag: f, value, set }) {
  if (f.kind === 'check') return html`<label class="check"><input type="checkbox" name=${f.name} checked=${value === true} onChange=${(/** @type {any} */ e) => set(e.target.checked)} /><span>${f.label}</span></label>`;
  if (f.kind === 'choice') {
    return html`<label class="stack"><span>${f.label}</span><select name=${f.name} value=${value} onChange=${(/** @type {any} */ e) => set(e.target.value)}><option value="">\u2013</option>${(f.choices ?? []).map((c) => html`<option key=${c} value=${c}>${c}</option>`)}</select></label>`;
  }
  return html`<label class="stack"><span>${f.label}</span><input type="text" name=${f.name} autofocus=${f.name === 'workflow'} inputmode=${f.kind === 'text' ? 'text' : 'decimal'} autocomplete="off" spellcheck=${false} maxlength="4096" placeholder=${f.hint ?? ''}
    value=${value} onInput=${(/** @type {any} */ e) => set(e.target.value)} /></label>`;
}

/** The form as flags, or what is wrong with it. @param {Record<string, string | boolean>} values @returns {api.RunFlags | string} */
function flagsOf(values) {
  /** @type {api.RunFlags} */
  const flags = {};
  for (const f of [...FLAGS, ...MORE]) {
    const v = values[f.name];
    if (v === undefined || v === '' || v === false) continue;
    if (f.kind === 'count' || f.kind === 'money') {
      const n = Number(v);
      if (!Number.isFinite(n) || n < 0 || (f.kind === 'count' && !Number.isInteger(n))) return `${f.label}: ${f.kind === 'count' ? 'a whole number' : 'a number'}, please`;
      flags[f.name] = n;
    } else flags[f.name] = typeof v === 'string' ? v.trim() : v;
  }
  return flags.workflow ? flags : 'Name the workflow: a YAML file in the repository.';
}

/** What a workflow is made of, in words. @param {api.Workflow} w */
const madeOf = (w) => [plural(w.steps ?? 0, 'step'), w.agents?.length ? `agents ${w.agents.slice(0, 6).map((a) => plain(a, 40)).join(', ')}${w.agents.length > 6 ? ' and more' : ''}` : '', w.asks?.length ? `asks a person at ${w.asks.slice(0, 6).map((s) => plain(s, 40)).join(', ')}${w.asks.length > 6 ? ' and more' : ''}` : ''].filter(Boolean).join('; ');

/** The workflows of the repository that fit what was typed; all if one of them is chosen. @param {{typed: string, choose: (path: string) => void}} props */
function Workflows({ typed, choose }) {
  const found = useSignal(/** @type {{list: api.Workflow[], more: boolean, words: string}} */ ({ list: [], more: false, words: 'Looking for workflows\u2026' }));
  useEffect(() => {
    let gone = false;
    api.workflows().then(({ workflows, more = false }) => { if (!gone) found.value = { list: workflows ?? [], more, words: workflows?.length ? '' : 'No workflow was found in the repository.' }; },
      (err) => { if (!gone) found.value = { list: [], more: false, words: err instanceof Error ? err.message : String(err) }; });
    return () => { gone = true; };
  }, []);
  const { list, more, words } = found.value;
  const text = list.some((w) => w.path === typed) ? '' : typed.toLowerCase();
  const fits = list.filter((w) => `${w.path}\n${w.name ?? ''}`.toLowerCase().includes(text));
  return html`<div class="workflows">${words && html`<p class="soft">${plain(words, 300)}</p>`}
    ${fits.length > 0 && html`<ul aria-label="Workflows">${fits.map((w) => html`<li key=${w.path}><button type="button" aria-pressed=${w.path === typed ? 'true' : 'false'} onClick=${() => choose(w.path)}>
      <b><bdi>${plain(w.name || w.path, 120)}</bdi></b>${w.name && html` <code>${plain(w.path, 200)}</code>`}
      ${w.fault ? html`<span class="workflow-fault"><${Icon} name="look" />${plain(w.fault, 300)}</span>` : html`${w.description && html`<span>${plain(w.description, 200)}</span>`}<span class="soft">${madeOf(w)}</span>`}</button></li>`)}</ul>`}
    ${more && html`<p class="soft">There are more than are listed; type the path of another one.</p>`}</div>`;
}

function StartSheet() {
  const values = useSignal(/** @type {Record<string, string | boolean>} */ ({}));
  const busy = useSignal(false);
  const wrong = useSignal('');
  const faults = useSignal(/** @type {api.Fault[]} */ ([]));
  const send = async () => {
    if (busy.value) return;
    const flags = flagsOf(values.value);
    faults.value = [];
    if (typeof flags === 'string') { wrong.value = flags; return; }
    wrong.value = '';
    busy.value = true;
    try {
      await startRun(flags);
      dialog.value = '';
    } catch (err) {
      wrong.value = err instanceof Error ? err.message : String(err);
      faults.value = err instanceof api.Failure ? err.faults : [];
    } finally { busy.value = false; }
  };
  const entry = (/** @type {Flag} */ f) => html`<${Entry} key=${f.name} flag=${f} value=${values.value[f.name] ?? ''} set=${(/** @type {string | boolean} */ v) => { values.value = { ...values.value, [f.name]: v }; }} />`;
  return html`<${Sheet} title="Start a run">
    <form class="start-form" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void send(); }}>
      ${entry(FLAGS[0])}
      <${Workflows} typed=${String(values.value.workflow ?? '').trim()} choose=${(/** @type {string} */ path) => { values.value = { ...values.value, workflow: path }; }} />
      ${FLAGS.slice(1).map(entry)}
      <details><summary>More</summary><div class="start-more">${MORE.map(entry)}</div></details>
      <div role="alert">${wrong.value && html`<div class="faults"><p><${Icon} name="look" />${faults.value.length > 0 ? 'The workflow cannot be started. No run was started.' : plain(wrong.value, 600)}</p>
        ${faults.value.length > 0 && html`<ul>${faults.value.slice(0, FAULTS_MAX).map((f, i) => html`<li key=${i}>${f.location && html`<code>${plain(f.location, 200)}</code> `}${plain(f.message, 400)}</li>`)}</ul>`}
        ${faults.value.length > FAULTS_MAX && html`<p>and ${faults.value.length - FAULTS_MAX} more; <code>fairlead run --check</code> lists all of them</p>`}</div>`}</div>
      <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { dialog.value = ''; }}>Not now</button>
        <button type="submit" class="order order-primary" aria-disabled=${busy.value ? 'true' : undefined} aria-busy=${busy.value ? 'true' : undefined}><${Icon} name="play" /><span>Start</span></button></div>
    </form><//>`;
}

/** @param {{step: string}} props */
function CancelSheet({ step }) {
  const note = useSignal('');
  const run = runID.peek();
  const send = () => { dialog.value = ''; void cancelRun(run, step, note.value.trim()); };
  return html`<${Sheet} title=${step ? `Cancel ${plain(step, 64)}?` : 'Cancel the run?'}>
    <ul class="plain-list"><li>${step ? 'Its process is ended, and the step has failed.' : 'Every process of it is ended. What was completed stays completed.'}</li><li>It can be resumed.</li></ul>
    <label class="stack"><span>Note, for the journal</span><input type="text" maxlength=${NOTE_MAX} value=${note.value} onInput=${(/** @type {any} */ e) => { note.value = e.target.value; }}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === 'Enter') { e.preventDefault(); send(); } }} /></label>
    <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { dialog.value = ''; }}>Let it be</button>
      <button type="button" class="order order-stop" onClick=${send}>${step ? 'End the Step' : 'End the Run'}</button></div><//>`;
}

/** @param {{step: string}} props */
function ResumeSheet({ step }) {
  const run = runID.peek();
  const send = () => { dialog.value = ''; void resumeRun(run, step); };
  return html`<${Sheet} title="Resume the run?">
    <p>${step ? html`The run continues at <b>${plain(step, 64)}</b>. That step and all later steps run again; earlier steps keep their results.` : 'The run continues at the steps that failed. Completed steps keep their results.'}</p>
    <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { dialog.value = ''; }}>Not now</button>
      <button type="button" class="order order-primary" onClick=${send}><${Icon} name="play" /><span>Resume it</span></button></div><//>`;
}

export function RunDialogs() {
  switch (dialog.value) {
    case 'start': return html`<${StartSheet} />`;
    case 'cancel': return html`<${CancelSheet} step="" />`;
    case 'cancel-step': return html`<${CancelSheet} step=${stepID.peek()} />`;
    case 'resume': return html`<${ResumeSheet} step="" />`;
    case 'resume-step': return html`<${ResumeSheet} step=${stepID.peek()} />`;
    default: return null;
  }
}
