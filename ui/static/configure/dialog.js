// The dialog that changes an agent of fairlead.yaml: the form, and then exactly what it makes of the file.

import * as api from '../shell/api.js';
import { html, useEffect, useSignal } from '../shell/lib.js';
import { Sheet } from '../shell/dialogs.js';
import { Icon } from '../shell/icons.js';
import { plain } from '../shell/text.js';
import { command } from '../agents/actions.js';
import { choose, dialog, go, spoken } from '../shell/router.js';
import { change } from './state.js';
import { entryOf, faultsOf, FIELDS, MORE, valuesOf } from './form.js';

/** @typedef {import('./form.js').Field} Field */
/** @typedef {import('./form.js').Values} Values */

const words = (/** @type {unknown} */ err) => (err instanceof Error ? err.message : String(err));
const close = () => { dialog.value = ''; };

/** @param {{field: Field, value: string | boolean, set: (v: string | boolean) => void, faults: api.Fault[]}} props */
function Entry({ field: f, value, set, faults }) {
  const id = `agent-${f.key}`;
  const common = { name: f.key, 'aria-invalid': faults.length > 0 ? 'true' : undefined, 'aria-describedby': faults.length > 0 ? `${id}-fault` : undefined };
  const typed = (/** @type {any} */ e) => set(e.target.value);
  const input = f.kind === 'check' ? html`<label class="check"><input type="checkbox" ...${common} checked=${value === true} onChange=${(/** @type {any} */ e) => set(e.target.checked)} /><span>${f.label}</span></label>`
    : html`<label class="stack"><span>${f.label}</span>${f.kind === 'choice' ? html`<select ...${common} value=${value} onChange=${typed}><option value="">\u2013</option>${(f.choices ?? []).map((c) => html`<option key=${c} value=${c}>${c}</option>`)}</select>`
      : f.kind === 'area' || f.kind === 'list' ? html`<textarea ...${common} rows=${f.kind === 'list' ? 2 : 3} spellcheck=${false} placeholder=${f.hint ?? ''} value=${value} onInput=${typed}></textarea>`
      : html`<input type="text" ...${common} inputmode=${f.kind === 'text' ? 'text' : 'decimal'} autocomplete="off" spellcheck=${false} placeholder=${f.hint ?? ''} value=${value} onInput=${typed} />`}</label>`;
  return html`<div class="configure-field">${input}<p class="fault" id="${id}-fault">${faults.map((x) => plain(x.message, 400)).join(' ')}</p></div>`;
}

/** The change of the file, line by line. @param {{text: string}} props */
const Diff = ({ text }) => html`<pre class="configure-diff" tabIndex=${0} aria-label="The change of fairlead.yaml">${text.split('\n').slice(3).map((line, i) => html`<span key=${i} class=${line[0] === '+' ? 'diff-added' : line[0] === '-' ? 'diff-deleted' : ''}>${plain(line, 2000) || '\u00a0'}</span>`)}</pre>`;

/** @param {{list: api.AgentFinding[]}} props */
const Findings = ({ list }) => html`<ul class="configure-findings" aria-label="The look at the program">${list.map((x, i) => html`<li key=${i} class=${x.ok ? 'state-ok' : 'state-wait'}><i aria-hidden="true">${x.ok ? '\u2713' : '!'}</i><span>${plain(x.what, 600)}${x.do ? html` <span class="soft">${plain(x.do, 400)}</span>` : ''}</span></li>`)}</ul>`;

/** @param {{op: import('./state.js').Op, agent: string}} props */
function AgentSheet({ op, agent }) {
  const name = useSignal(agent);
  const values = useSignal(/** @type {Values | null} */ (op === 'add' ? valuesOf({ driver: 'exec' }) : null));
  const programs = useSignal(/** @type {api.ConfigProgram[]} */ ([]));
  const preview = useSignal(/** @type {api.AgentPreview | null} */ (null));
  const findings = useSignal(/** @type {api.AgentFinding[] | null} */ (null));
  const written = useSignal(/** @type {api.AgentWritten | null} */ (null));
  const busy = useSignal('');
  const wrong = useSignal('');
  const faults = useSignal(/** @type {api.Fault[]} */ ([]));

  const asking = async (/** @type {string} */ what, /** @type {() => Promise<void>} */ ask) => {
    if (busy.value) return;
    busy.value = what;
    wrong.value = '';
    faults.value = [];
    try { await ask(); } catch (err) {
      faults.value = err instanceof api.Failure ? err.faults : [];
      const beside = faults.value.length > 0 && faultsOf(faults.value, name.value, undefined).length === 0;
      wrong.value = beside ? 'The file would not load. See the fields that are marked.' : words(err);
    } finally { busy.value = ''; }
  };
  /** The change as it is asked for; throws what is wrong with the form. @returns {api.AgentChange} */
  const asked = () => {
    if (op === 'remove') return { op, name: name.value };
    const entry = entryOf(values.value ?? {});
    if (typeof entry === 'string') throw new Error(entry);
    return { op, name: name.value.trim(), agent: entry };
  };
  const look = () => asking('look', async () => { findings.value = null; preview.value = await api.previewAgent(asked()); });
  const test = () => asking('test', async () => { findings.value = (await api.testAgent(asked())).findings ?? []; });
  const write = () => asking('write', async () => {
    try { written.value = await api.writeAgent({ ...asked(), sum: preview.value?.sum ?? '' }); } catch (err) {
      if (!(err instanceof api.Failure) || err.status !== 412) throw err;
      preview.value = await api.previewAgent(asked());
      throw new Error('fairlead.yaml was changed meanwhile, so nothing was written. This is the change as it would be now.');
    }
    spoken.value = 'fairlead.yaml was written';
    if (op !== 'add' && !written.value.fault) close();
  });
  useEffect(() => {
    void asking('read', async () => {
      if (op === 'remove') { preview.value = await api.previewAgent(asked()); return; }
      const all = await api.configAgents();
      programs.value = all.programs ?? [];
      if (all.why) throw new Error(all.why);
      if (op === 'edit') values.value = valuesOf((await api.configAgent(agent)).agent);
    });
  }, []);

  const off = busy.value ? 'true' : undefined;
  const trouble = html`<div role="alert">${wrong.value && html`<div class="faults"><p><${Icon} name="look" />${plain(wrong.value, 800)}</p></div>`}</div>`;
  if (written.value) {
    const fresh = name.value.trim();
    const start = () => { close(); go('agents'); choose(fresh); void command(fresh, 'start'); };
    return html`<p>${written.value.fault ? html`<b>The file was written, but it could not be loaded.</b> ${plain(written.value.fault, 600)}` : html`<b>${plain(fresh, 64)}</b> is in the team now.`}</p>
      <div class="dialog-foot"><button type="button" class="plain-button" autofocus onClick=${close}>Close</button>${op === 'add' && !written.value.fault && html`<button type="button" class="order order-primary" onClick=${start}><${Icon} name="play" /><span>Start it</span></button>`}</div>`;
  }
  if (preview.value) {
    return html`<p>${op === 'remove' ? 'This goes from' : 'This changes in'} <code>fairlead.yaml</code>; all other text stays as it is.</p>
      ${preview.value.diff ? html`<${Diff} text=${preview.value.diff} />` : html`<p class="soft">Nothing changes.</p>`}
      ${[...(preview.value.changes ?? []), ...(preview.value.notes ?? [])].length > 0 && html`<ul class="plain-list">${[...(preview.value.changes ?? []), ...(preview.value.notes ?? [])].map((t, i) => html`<li key=${i}>${plain(t, 400)}</li>`)}</ul>`}
      ${trouble}
      <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { if (op === 'remove') close(); else { preview.value = null; wrong.value = ''; } }}>${op === 'remove' ? 'Keep it' : 'Back'}</button>
        <button type="button" class="order ${op === 'remove' ? 'order-stop' : 'order-primary'}" aria-disabled=${off || !preview.value.diff ? 'true' : undefined} aria-busy=${busy.value === 'write' ? 'true' : undefined} onClick=${() => { if (preview.value?.diff) void write(); }}><span>${op === 'remove' ? 'Remove the Agent' : 'Write the File'}</span></button></div>`;
  }
  const v = values.value;
  if (!v) return html`${wrong.value ? trouble : html`<p class="soft">Reading fairlead.yaml\u2026</p>`}<div class="dialog-foot"><button type="button" class="plain-button" onClick=${close}>Close</button></div>`;
  const set = (/** @type {Values} */ part) => { values.value = { ...v, ...part }; };
  const entry = (/** @type {Field} */ f) => html`<${Entry} key=${f.key} field=${f} value=${v[f.key] ?? ''} faults=${faultsOf(faults.value, name.value.trim(), f)} set=${(/** @type {string | boolean} */ x) => set({ [f.key]: x })} />`;
  const pick = (/** @type {string} */ which) => {
    const p = programs.value.find((x) => x.name === which);
    if (p) set({ driver: p.driver, command: (p.command ?? []).join('\n') });
  };
  const chosen = programs.value.find((p) => p.driver === v.driver && (p.command ?? []).join('\n') === v.command)?.name ?? '';
  const elsewhere = faultsOf(faults.value, name.value.trim(), undefined);
  return html`<form class="start-form" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void look(); }} onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); void look(); } }}>
    <div class="new-row">${op === 'add' ? html`<label class="stack"><span>Name</span><input name="name" type="text" required autofocus autocomplete="off" spellcheck=${false} maxlength="64" pattern="[a-z0-9][a-z0-9._\\-]*" title="small letters, digits, and . _ - between them" value=${name.value} onInput=${(/** @type {any} */ e) => { name.value = e.target.value; }} /></label>` : ''}
      <label class="stack"><span>Program</span><select name="program" value=${chosen} onChange=${(/** @type {any} */ e) => pick(e.target.value)}><option value="">a program of your own</option>${programs.value.map((p) => html`<option key=${p.name} value=${p.name}>${plain(p.title, 60)}${p.path ? '' : ' (not installed)'}</option>`)}</select></label></div>
    ${FIELDS.map(entry)}
    <details open=${MORE.some((f) => faultsOf(faults.value, name.value.trim(), f).length > 0)}><summary>More</summary><div class="start-more">${MORE.map(entry)}</div></details>
    ${findings.value && html`<${Findings} list=${findings.value} />`}
    ${trouble}${elsewhere.length > 0 && html`<ul class="configure-else">${elsewhere.map((x, i) => html`<li key=${i}><code>${plain(x.location ?? '', 120)}</code> ${plain(x.message, 400)}</li>`)}</ul>`}
    <div class="dialog-foot"><button type="button" class="plain-button configure-test" aria-disabled=${off} aria-busy=${busy.value === 'test' ? 'true' : undefined} onClick=${test}>${busy.value === 'test' ? 'Looking\u2026' : 'Test the program'}</button>
      <button type="button" class="plain-button" onClick=${close}>Not now</button>
      <button type="submit" class="order order-primary" aria-disabled=${off} aria-busy=${busy.value === 'look' ? 'true' : undefined}><span>Show the change</span></button></div>
  </form>`;
}

export function AgentDialog() {
  if (dialog.value !== 'agent') return null;
  const { op, name } = change.value;
  const title = op === 'add' ? 'Add an agent' : `${op === 'edit' ? 'Edit' : 'Remove'} ${plain(name, 64)}`;
  return html`<${Sheet} title=${title} wide><${AgentSheet} op=${op} agent=${name} /><//>`;
}
