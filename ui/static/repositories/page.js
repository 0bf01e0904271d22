// The list of all repositories: a page with a card each, and a dialog to switch.

import { live } from '../shell/connection.js';
import { Sheet } from '../shell/dialogs.js';
import { Icon } from '../shell/icons.js';
import { html } from '../shell/lib.js';
import { dialog, go } from '../shell/router.js';
import { plain } from '../shell/text.js';
import { openRepository, opening } from './actions.js';
import { all, broken, known, running, trouble } from './state.js';
import { countWords, needWords, openCommand, pageOf } from './words.js';

/** @typedef {import('../shell/api.js').Repository} Repository */

/** @param {{of: Repository}} props */
function Repo({ of: r }) {
  const { href } = pageOf(r, all.value.outside);
  const need = needWords(r);
  const go = (/** @type {MouseEvent} */ e) => {
    if (e.ctrlKey || e.metaKey || e.shiftKey || e.button !== 0) return;
    e.preventDefault();
    void openRepository(r);
  };
  const name = html`<bdi>${plain(r.name, 80)}</bdi>`;
  return html`<li class="repo" aria-current=${r.here ? 'true' : undefined}>
    <p class="repo-name">${r.here ? html`<b>${name}</b><span class="soft">this one</span>` : href ? html`<a class="repo-open" href=${href} onClick=${go} aria-busy=${opening.value === r.id ? 'true' : undefined}>${name}</a>` : html`<b>${name}</b>`}
      ${need && html`<span class="repo-need">${need}</span>`}</p>
    <p class="repo-counts">${countWords(r)}</p>
    <p class="repo-dir"><bdi>${plain(r.dir, 300)}</bdi></p>
    ${!r.here && !href && html`<p class="repo-away">Its page is on the machine where it runs, and this browser came here from elsewhere. There: <code>${openCommand(r)}</code></p>`}
  </li>`;
}

/** What is wrong with sockets that gave no summary. */
function Broken() {
  const n = broken.value.length;
  return n === 0 ? null : html`<section class="repo-broken" aria-label="Sockets without an answer"><h3>${n === 1 ? '1 socket gives no answer' : `${n} sockets give no answer`}</h3>
    <ul>${broken.value.map((r) => html`<li key=${r.id}><code>${plain(r.id, 40)}</code> <span>${plain(r.detail, 300)}</span></li>`)}</ul></section>`;
}

function List() {
  return html`${trouble.value && html`<p class="fault-place" role="alert">${plain(trouble.value, 300)}</p>`}
    ${known.value ? html`<ul class="repos">${running.value.map((r) => html`<${Repo} key=${r.id} of=${r} />`)}</ul>` : !trouble.value && html`<p class="quiet-note">${live.value ? 'Asking the other daemons\u2026' : 'Cut off.'}</p>`}
    ${all.value.more > 0 && html`<p class="soft">${all.value.more} more were not asked, because 50 are the limit.</p>`}`;
}

export function RepositoriesPage() {
  const n = running.value.filter((r) => r.needs_you > 0).length;
  return html`<div class="repos-page"><h2 id="repositories-title" tabIndex=${-1}>All repositories</h2>
    <p class="soft">${!known.value ? 'Every repository in which a daemon of yours runs.' : n === 0 ? 'Nothing needs you in any of them.' : n === 1 ? 'One of them needs you.' : `${n} of them need you.`}</p>
    <${List} /><${Broken} />
    <p class="soft repos-foot">Each has its own daemon and its own login. In a terminal: <code>fairlead repos</code>. Over an ssh tunnel, forward the port of each one that you open.</p></div>`;
}

/** The dialog that the name in the masthead opens. */
export function Switcher() {
  if (dialog.value !== 'repositories') return null;
  return html`<${Sheet} title="Switch repository"><${List} />
    <div class="dialog-foot"><button type="button" class="plain-button" onClick=${() => { dialog.value = ''; go('repositories'); }}><${Icon} name="shut" /><span>All repositories</span></button></div><//>`;
}
