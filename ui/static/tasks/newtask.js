// The dialog that gives a task.

import * as api from '../shell/api.js';
import { size } from '../shell/format.js';
import { html, useRef, useSignal } from '../shell/lib.js';
import { names } from '../agents/state.js';
import { refreshRuns } from '../runs/state.js';
import { Sheet } from '../shell/dialogs.js';
import { Icon } from '../shell/icons.js';
import { plain } from '../shell/text.js';
import { dialog, showTask, spoken } from '../shell/router.js';

/** The server's limits. */
const TEXT_MAX = 65_536;
const FILES_MAX = 10;
const FILE_BYTES_MAX = 256 * 1024;
const IMAGE_BYTES_MAX = 3 * 1024 * 1024;
const IMAGES_BYTES_MAX = 8 * 1024 * 1024;

/** @typedef {{name: string, text: string, image: string, bytes: number}} Attached image: as a data URL, or empty */

/** The types of images that programs take, by the first characters of their base64; the server looks at the whole content. */
const IMAGES = [['iVBORw0KGgo', 'image/png'], ['/9j/', 'image/jpeg'], ['R0lGODdh', 'image/gif'], ['R0lGODlh', 'image/gif'], ['UklGR', 'image/webp']];

/** Reads a file, or throws what is wrong with it. @param {File} file @returns {Promise<Attached>} */
async function read(file) {
  const label = plain(file.name, 80);
  if (file.size > IMAGE_BYTES_MAX) throw new Error(`${label} is larger than ${size(IMAGE_BYTES_MAX)}. Put it into the repository, or name its path in the text.`);
  const data = (await api.dataURL(file)).split(',')[1] ?? '';
  const type = IMAGES.find(([begin]) => data.startsWith(begin))?.[1];
  if (type) return { name: file.name, text: '', image: `data:${type};base64,${data}`, bytes: file.size };
  if (file.size > FILE_BYTES_MAX) throw new Error(`${label} is larger than ${size(FILE_BYTES_MAX)}. Put it into the repository, or name its path in the text.`);
  let text;
  try { text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(await file.arrayBuffer()); } catch { text = '\0'; }
  if (text.includes('\0')) throw new Error(`${label} is neither a text file nor a PNG, JPEG, GIF or WebP image. Put it into the repository, and name its path in the text.`);
  return { name: file.name, text, image: '', bytes: file.size };
}

/** A name that no other file has: every pasted picture is called image.png. @param {string} wanted @param {string[]} taken */
function freeName(wanted, taken) {
  const dot = wanted.lastIndexOf('.'), end = dot > 0 ? wanted.slice(dot) : '', stem = end ? wanted.slice(0, dot) : wanted;
  let name = wanted;
  for (let n = 2; taken.includes(name); n++) name = `${stem}-${n}${end}`;
  return name;
}

export function NewTask() {
  const text = useSignal('');
  const agent = useSignal('');
  const base = useSignal('');
  const files = useSignal(/** @type {Attached[]} */ ([]));
  const busy = useSignal(false);
  const wrong = useSignal('');
  const picker = useRef(/** @type {HTMLInputElement | null} */ (null));
  if (dialog.value !== 'task') return null;
  const add = async (/** @type {File[]} */ list, /** @type {boolean} */ pasted) => {
    wrong.value = '';
    for (const file of list) {
      try {
        const one = await read(file);
        if (pasted) one.name = freeName(one.name, files.value.map((f) => f.name));
        const others = files.value.filter((f) => f.name !== one.name);
        if (others.length >= FILES_MAX) throw new Error(`At most ${FILES_MAX} files can be attached.`);
        if (one.image && others.reduce((n, f) => n + (f.image ? f.bytes : 0), one.bytes) > IMAGES_BYTES_MAX) throw new Error(`The images are larger than ${size(IMAGES_BYTES_MAX)} together; attach smaller ones.`);
        files.value = [...others, one];
      } catch (err) { wrong.value = err instanceof Error ? err.message : String(err); }
    }
  };
  const close = () => { dialog.value = ''; };
  const send = async () => {
    if (busy.value) return;
    if (!text.value.trim()) { wrong.value = 'Say what is to be done.'; return; }
    wrong.value = '';
    busy.value = true;
    try {
      const view = await api.startRun({ task: { text: text.value.trim(), ...(agent.value && { agent: agent.value }), ...(base.value.trim() && { base: base.value.trim() }), ...(files.value.length > 0 && { attachments: files.value.map((f) => (f.image ? { name: f.name, image: f.image.split(',')[1] } : { name: f.name, text: f.text })) }) } });
      spoken.value = `started ${plain(view.run_id, 60)}`;
      text.value = ''; files.value = [];
      refreshRuns(true);
      dialog.value = '';
      showTask(view.run_id);
    } catch (err) {
      wrong.value = err instanceof Error ? err.message : String(err);
    } finally { busy.value = false; }
  };
  return html`<${Sheet} title="New task" wide>
    <form class="start-form" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); void send(); }} onDragOver=${(/** @type {Event} */ e) => e.preventDefault()} onDrop=${(/** @type {DragEvent} */ e) => { e.preventDefault(); if (e.dataTransfer) void add([...e.dataTransfer.files], false); }}
      onPaste=${(/** @type {ClipboardEvent} */ e) => { const list = [...(e.clipboardData?.files ?? [])]; if (list.length > 0) { e.preventDefault(); void add(list, true); } }}>
      <label class="stack"><span>What is to be done</span><textarea name="task" rows="7" autofocus maxlength=${TEXT_MAX} placeholder="Add retries to the uploader: three attempts, then give up with a clear message." value=${text.value} onInput=${(/** @type {any} */ e) => { text.value = e.target.value; }}
        onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === 'Enter' && (e.ctrlKey || e.metaKey)) { e.preventDefault(); void send(); } }}></textarea></label>
      <div class="new-row"><label class="stack"><span>Agent</span><select name="agent" value=${agent.value} onChange=${(/** @type {any} */ e) => { agent.value = e.target.value; }}><option value="">by description</option>${names.value.map((n) => html`<option key=${n} value=${n}>${plain(n, 64)}</option>`)}</select></label>
        <label class="stack"><span>Lands on branch</span><input name="base" type="text" autocomplete="off" spellcheck=${false} maxlength="200" placeholder="as configured" value=${base.value} onInput=${(/** @type {any} */ e) => { base.value = e.target.value; }} /></label></div>
      <div class="new-files"><button type="button" class="plain-button" onClick=${() => picker.current?.click()}><${Icon} name="plus" />Attach files</button><input ref=${picker} type="file" multiple hidden aria-label="Files" onChange=${(/** @type {any} */ e) => { void add([...e.target.files], false); e.target.value = ''; }} />
        ${files.value.length === 0 && html`<span class="soft">text or images; drop or paste them here, too</span>`}
        <ul>${files.value.map((f) => html`<li key=${f.name}>${f.image && html`<img src=${f.image} alt="" />`}<code>${plain(f.name, 80)}</code><span class="num soft">${size(f.bytes)}</span><button type="button" class="icon-button" aria-label="Remove ${plain(f.name, 80)}" onClick=${() => { files.value = files.value.filter((o) => o !== f); }}><${Icon} name="close" /></button></li>`)}</ul></div>
      <div role="alert">${wrong.value && html`<div class="faults"><p><${Icon} name="look" />${plain(wrong.value, 600)}</p></div>`}</div>
      <div class="dialog-foot"><button type="button" class="plain-button" onClick=${close}>Not now</button>
        <button type="submit" class="order order-primary" aria-disabled=${busy.value ? 'true' : undefined} aria-busy=${busy.value ? 'true' : undefined}><${Icon} name="play" /><span>Give the task</span></button></div>
    </form><//>`;
}
