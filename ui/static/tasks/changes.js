// What a task has changed: what is compared, the list of files, and the files.

import { html } from '../shell/lib.js';
import { plain } from '../shell/text.js';
import { byPlace, changes, changesWrong, lastReview, loading, readChanges, renewed, scope, showScope, viewed, viewKey } from './state.js';
import { Placeless } from './comment.js';
import { File } from './file.js';
import { Icon } from '../shell/icons.js';
import { overlapping, some } from './words.js';

/** Files up to which their list is open. */
const LIST_OPEN_MAX = 12;
const FILES_PAGE = 300;

/** @param {{c: import('../shell/api.js').TaskChanges}} props */
function Scope({ c }) {
  return html`<label class="scope"><span class="hidden">What is compared</span><select value=${scope.value} onChange=${(/** @type {any} */ e) => showScope(e.target.value)}>
    <option value="all">All changes since ${plain(c.base, 60)}</option>
    ${lastReview(c) && html`<option value="since">Since your last review</option>`}
    ${c.commits.length > 0 && html`<optgroup label="One commit">${c.commits.map((k) => html`<option key=${k.id} value=${k.id}>${plain(k.id, 8).slice(0, 8)} ${plain(k.subject, 60)}</option>`)}</optgroup>`}
  </select></label>`;
}

/** @param {{task: string}} props */
export function Changes({ task }) {
  const c = changes.value;
  if (!c) return html`<div class="changes-none">${changesWrong.value ? html`<p class="worry-box"><${Icon} name="look" /><span>The changes cannot be shown: ${plain(changesWrong.value, 400)}</span></p>` : html`<p class="soft">Reading the changes\u2026</p>`}</div>`;
  const added = c.files.reduce((n, f) => n + f.added, 0), deleted = c.files.reduce((n, f) => n + f.deleted, 0);
  const seen = c.files.filter((f) => viewed.value.has(viewKey(c, f.name))).length;
  const said = new Set([...byPlace.value.values()].flat().map((k) => k.at?.file));
  return html`<div class="changes">
    <div class="changes-head"><h3 id="changes-title" tabIndex=${-1}>${some(c.files.length + (c.more_files ?? 0), 'file', 'files')} changed</h3><span class="num"><span class="diff-added">+${added}</span> <span class="diff-deleted">\u2212${deleted}</span></span>${seen > 0 && html`<span class="soft num">${seen} viewed</span>`}
      <${Scope} c=${c} />
      ${c.live && html`<button type="button" class="plain-button" aria-busy=${loading.value ? 'true' : undefined} onClick=${() => void readChanges(task)}>Refresh</button>`}</div>
    ${renewed.value && html`<p class="worry-box"><${Icon} name="look" /><span>It was changed while you looked. This is the new state.</span><button type="button" class="link" onClick=${() => { renewed.value = false; }}>Dismiss</button></p>`}
    ${changesWrong.value && html`<p class="worry-box"><${Icon} name="look" /><span>${plain(changesWrong.value, 400)}</span></p>`}
    ${(c.overlaps ?? []).map((o) => html`<p key=${o.id} class="quiet-note">${overlapping(o)}</p>`)}
    <${Placeless} task=${task} />
    ${c.files.length > 1 && html`<details class="files" open=${c.files.length <= LIST_OPEN_MAX}><summary>Files</summary><ol>${c.files.slice(0, FILES_PAGE).map((f, i) => html`<li key=${i}><button type="button" class="link files-name" onClick=${() => document.getElementById(`file-${i}`)?.scrollIntoView({ block: 'start' })}><bdi>${plain(f.name, 200)}</bdi></button>${viewed.value.has(viewKey(c, f.name)) && html`<span class="soft">\u2713<span class="hidden"> viewed</span></span>`}${said.has(f.name) && html`<span class="df-said">commented</span>`}<span class="num soft">${f.binary ? 'binary' : html`<span class="diff-added">+${f.added}</span> <span class="diff-deleted">\u2212${f.deleted}</span>`}</span></li>`)}</ol></details>`}
    ${c.files.length === 0 && html`<p class="quiet-note">${scope.value === 'all' ? (c.live ? 'Nothing was changed yet.' : 'Nothing was changed.') : 'Nothing was changed in between.'}</p>`}
    ${c.files.slice(0, FILES_PAGE).map((f, i) => html`<${File} key=${`${c.from} ${c.to} ${i}`} task=${task} changes=${c} n=${i} />`)}
    ${c.files.length > FILES_PAGE || c.more_files ? html`<p class="df-note">${some(c.files.length - Math.min(FILES_PAGE, c.files.length) + (c.more_files ?? 0), 'more file is', 'more files are')} not shown; <code>fairlead diff ${plain(task, 48)}</code> shows all.</p>` : ''}
  </div>`;
}
