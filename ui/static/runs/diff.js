// What a task has changed, file by file. It is an agent's text and is shown as text.

import * as api from '../shell/api.js';
import { html, useEffect, useMemo, useSignal } from '../shell/lib.js';
import { blocks, readDiff } from './difftext.js';
import { plain } from '../shell/text.js';

const BLOCK_LINES = 100;
const LINE_MAX = 2000;
const FILES_OPEN = 20;

const MARKS = { add: '+', del: '\u2212', hunk: '', same: ' ', note: '' };

/** @param {{file: import('./difftext.js').DiffFile, open: boolean}} props */
const File = ({ file, open }) => html`<details class="diff-file" open=${open}>
  <summary><code>${plain(file.name, 300)}</code> <span class="num diff-added">+${file.added}</span> <span class="num diff-deleted">\u2212${file.deleted}</span></summary>
  <div class="diff-lines" tabIndex=${0} role="region" aria-label="Changes in ${plain(file.name, 100)}">${blocks(file.lines, BLOCK_LINES).map((list, i) => html`<div key=${i} class="diff-block" style=${`contain-intrinsic-height: auto ${list.length * 18}px`}>${list.map((l, k) =>
    html`<div key=${k} class="diff-line diff-${l.kind}"><span class="diff-at num" aria-hidden="true">${l.at || ''}</span><span class="diff-mark">${MARKS[l.kind]}</span><span class="diff-text">${plain(l.text, LINE_MAX)}</span></div>`)}</div>`)}</div></details>`;

/** @param {{run: string, round: number}} props round: it is read again when the task was sent back in between */
export function TaskDiff({ run, round }) {
  const diff = useSignal(/** @type {import('../shell/api.js').TaskDiff | null} */ (null));
  const wrong = useSignal('');
  useEffect(() => {
    let gone = false;
    diff.value = null;
    api.taskDiff(run).then((d) => { if (!gone) { diff.value = d; wrong.value = ''; } }, (err) => { if (!gone) wrong.value = err instanceof Error ? err.message : String(err); });
    return () => { gone = true; };
  }, [run, round]);
  const files = useMemo(() => (diff.value ? readDiff(diff.value.text) : []), [diff.value]);
  if (wrong.value) return html`<p class="worry-box">The changes cannot be shown: ${plain(wrong.value, 400)}</p>`;
  if (!diff.value) return html`<p class="soft">Reading the changes\u2026</p>`;
  return html`<section class="diff" aria-label="Changes">
    <h4>${files.length === 1 ? '1 file' : `${files.length} files`} changed, compared with ${plain(diff.value.base, 100)}</h4>
    ${files.map((f, i) => html`<${File} key=${i} file=${f} open=${i < FILES_OPEN} />`)}
    ${diff.value.cut && html`<p class="soft">There is more; <code>fairlead diff ${plain(run, 48)}</code> shows all of it.</p>`}
  </section>`;
}
