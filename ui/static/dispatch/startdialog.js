// The dialog that starts a session.

import { html, useSignal } from '../shell/lib.js';
import { startSession } from './actions.js';
import { HOSTS, MODES } from './words.js';
import { plain } from '../shell/text.js';
import { dialog } from '../shell/router.js';
import { Sheet } from '../shell/dialogs.js';
import { Icon } from '../shell/icons.js';

/** Longest path, the same limit as the server's. */
const PATH_MAX = 4096;

function Form() {
  const mode = useSignal('orchestrator');
  const host = useSignal('');
  const path = useSignal('');
  const busy = useSignal(false);
  const wrong = useSignal('');
  const send = async () => {
    if (busy.value) return;
    wrong.value = '';
    busy.value = true;
    try {
      await startSession({ mode: mode.value, ...(host.value && { host: host.value }), ...(path.value.trim() && { path: path.value.trim() }) });
      dialog.value = '';
    } catch (err) {
      wrong.value = err instanceof Error ? err.message : String(err);
    } finally { busy.value = false; }
  };
  const choice = (/** @type {string} */ label, /** @type {string} */ id, /** @type {import('../shell/lib.js').Signal<string>} */ value, /** @type {[string, string][]} */ all, /** @type {string} */ about) => html`<label class="stack"><span>${label}</span>
    <select id=${id} aria-describedby="${id}-about" value=${value.value} onChange=${(/** @type {any} */ e) => { value.value = e.target.value; }}>${all.map(([key, name]) => html`<option key=${key} value=${key}>${name}</option>`)}</select>
    <span id="${id}-about" class="entry-about soft">${about}</span></label>`;
  return html`<${Sheet} title="Start a dispatch"><form class="start-form" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void send(); }}>
    ${choice('Mode', 'session-mode', mode, Object.keys(MODES).map((m) => [m, m]), MODES[mode.value] ?? '')}
    ${choice('Who does the work', 'session-host', host, [['', 'as fairlead.yaml says'], ['fairlead', 'agents of fairlead.yaml'], ['none', 'people and programs']], HOSTS[host.value] ?? 'agents, where fairlead.yaml names one as MAIN or describes some; else people and programs')}
    <details><summary>More</summary><label class="stack session-path"><span>Folder</span><input type="text" name="path" autocomplete="off" spellcheck=${false} maxlength=${PATH_MAX} placeholder=".claude/agent-state-machine/ and the time" value=${path.value} onInput=${(/** @type {any} */ e) => { path.value = e.target.value; }} /></label></details>
    <div role="alert">${wrong.value && html`<div class="faults"><p><${Icon} name="look" /><span>${plain(wrong.value, 600)}</span></p></div>`}</div>
    <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { dialog.value = ''; }}>Not now</button>
      <button type="submit" class="order order-primary" aria-disabled=${busy.value ? 'true' : undefined} aria-busy=${busy.value ? 'true' : undefined}><${Icon} name="play" /><span>Start</span></button></div>
  </form><//>`;
}

export const StartDispatchDialog = () => (dialog.value === 'session' ? html`<${Form} />` : null);
