// The help dialog, and the dialogs that set and lift the hold.

import { hold } from '../agents/actions.js';
import { focusHeading } from './focus.js';
import { html, useEffect, useRef, useSignal } from './lib.js';
import { letterKeys } from './prefs.js';
import { dialog } from './router.js';
import { Icon } from './icons.js';

/** Longest note, in characters; the journal keeps it forever. */
const NOTE_MAX = 500;

/** @param {{title: string, children?: any, wide?: boolean}} props */
export function Sheet({ title, children, wide }) {
  const ref = useRef(/** @type {HTMLDialogElement | null} */ (null));
  useEffect(() => {
    const el = /** @type {HTMLDialogElement} */ (ref.current);
    const before = document.activeElement;
    el.showModal();
    // Nothing outside of an open dialog takes the focus, so this waits until the dialog is gone. The button may be gone by then, too.
    return () => queueMicrotask(() => { if (before instanceof HTMLElement && before.isConnected) before.focus(); else focusHeading(); });
  }, []);
  return html`<dialog ref=${ref} class="sheet-dialog ${wide ? 'wide' : ''}" aria-labelledby="dialog-title" onClose=${() => { dialog.value = ''; }}
    onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === 'Escape') { e.preventDefault(); ref.current?.close(); } }}
    onClick=${(/** @type {any} */ e) => { if (e.target === ref.current) ref.current?.close(); }}>
    <div class="dialog-body"><div class="dialog-head"><h2 id="dialog-title">${title}</h2>
      <button type="button" class="icon-button" aria-label="Close" onClick=${() => ref.current?.close()}><${Icon} name="close" /></button></div>${children}</div>
  </dialog>`;
}

/** @param {{on: boolean}} props */
function HoldSheet({ on }) {
  const note = useSignal('');
  const send = () => {
    dialog.value = '';
    void hold(on, note.value.trim().slice(0, NOTE_MAX));
  };
  return html`<${Sheet} title=${on ? 'Hold the team?' : 'Release the team?'}>
    ${on ? html`<ul class="plain-list"><li>Nothing new starts: no session, no turn, no step, no wake.</li>
      <li>Current sessions finish. Nothing is interrupted.</li>
      <li>Every desired state stays as it is and takes effect on release.</li>
      <li>The hold lasts until a person releases it, also over a restart.</li></ul>`
      : html`<p>Every agent whose desired state is to run starts again now.</p>`}
    <label class="stack"><span>Note, for the journal</span>
      <input type="text" maxlength=${NOTE_MAX} value=${note.value} placeholder=${on ? 'why' : ''} onInput=${(/** @type {any} */ e) => { note.value = e.target.value; }}
        onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === 'Enter') { e.preventDefault(); send(); } }} /></label>
    <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { dialog.value = ''; }}>Cancel</button>
      <button type="button" class="order ${on ? 'order-hold' : 'order-primary'}" onClick=${send}>${on ? 'Hold the Team' : 'Release the Team'}</button></div>
  <//>`;
}

const KEYS = [
  ['\u2191 \u2193', 'the agent before, the next'], ['Home End', 'the first agent, the last'], ['Enter', 'show the agent'], ['Esc', 'back to the team'],
  ['Ctrl+K', 'search, go to a place, or do something; also /'], ['E', 'write in a channel or a dispatch; search a transcript'], ['G A B W R M D I Y U L', 'now, team, tasks, crew, runs, channels, dispatch, inbox, history, usage, hosts'], ['J K', 'on Now and Inbox: the next card, the one before'], ['A R', 'on Now and Inbox: yes or no to the chosen card'], ['1 2 3', 'output, evidence, history'], ['N', 'jump to the newest output'], ['H', 'hold or release the team'], ['T', 'change the theme'], ['P', 'look back, or back to now'], ['[ ]', 'one change earlier, one later'], ['?', 'this sheet'],
];
const ORDER_KEYS = [['S', 'Start Agent'], ['X', 'Stop Agent'], ['O', 'Run Single Session'], ['C', 'Run Cleanup Session']];

/** @param {{rows: string[][]}} props */
const Keys = ({ rows }) => html`<dl class="keys">${rows.map(([k, what]) => html`<div key=${k}><dt>${k.split(' ').map((x) => html`<kbd key=${x}>${x}</kbd>`)}</dt><dd>${what}</dd></div>`)}</dl>`;

function HelpSheet() {
  return html`<${Sheet} title="Keys and words" wide>
    <div class="help-columns"><section><h3>Getting around</h3><${Keys} rows=${KEYS} /></section>
    <section><h3>Orders for the selected agent</h3><${Keys} rows=${ORDER_KEYS} />
      <label class="check"><input type="checkbox" checked=${letterKeys.value === 'on'} onChange=${(/** @type {any} */ e) => { letterKeys.value = e.target.checked ? 'on' : 'off'; }} />
        <span>Single letters work as keys</span></label>
      <h3>Words</h3><dl class="words">
        <div><dt>RUNNING</dt><dd>a session's process is there, or its own loop reported lately</dd></div>
        <div><dt>WAITING</dt><dd>for a person: see Now</dd></div>
        <div><dt>FAILED</dt><dd>it gave up; Now says why</dd></div>
        <div><dt>UNKNOWN</dt><dd>evidence is missing or contradicts itself</dd></div>
        <div><dt>Stop Agent</dt><dd>the current session finishes, then the agent stops; you can also end the session</dd></div>
        <div><dt>then: \u2026</dt><dd>the desired state after the current session</dd></div>
        <div><dt>to look at</dt><dd>evidence is missing or contradicts the status, or sessions fail</dd></div></dl></section></div>
  <//>`;
}

export function Dialogs() {
  switch (dialog.value) {
    case 'help': return html`<${HelpSheet} />`;
    case 'hold': return html`<${HoldSheet} key="hold" on=${true} />`;
    case 'release': return html`<${HoldSheet} key="release" on=${false} />`;
    default: return null;
  }
}
