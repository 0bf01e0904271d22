// The separate yes to files that decide what runs later.

import { html } from '../shell/lib.js';
import { plain } from '../shell/text.js';
import { Icon } from '../shell/icons.js';

const NAMES_MAX = 20;

/** Is the yes given that these changes need? @param {import('../shell/api.js').TaskChanges} c @param {string} yes the hash that was ticked */
export const allowed = (c, yes) => !c.governing_hash || yes === c.governing_hash;

/**
 * What a person has to know, and a tick for exactly what is shown: a change of it takes the tick away.
 * @param {{c: import('../shell/api.js').TaskChanges, yes: import('../shell/lib.js').Signal<string>}} props
 */
export function Governs({ c, yes }) {
  return html`${(c.told ?? []).map((t, i) => html`<p key=${i} class="worry-box"><${Icon} name="look" /><span>${plain(t, 600)}</span></p>`)}<${Yes} c=${c} yes=${yes} />`;
}

/** @param {{c: import('../shell/api.js').TaskChanges, yes: import('../shell/lib.js').Signal<string>}} props */
function Yes({ c, yes }) {
  const hash = c.governing_hash;
  if (!hash) return null;
  const names = c.files.filter((f) => f.governing).map((f) => plain(f.name, 160));
  const more = names.length - NAMES_MAX;
  return html`<div class="worry-box"><${Icon} name="look" /><div><p>These files decide what runs later, outside of the agent's bounds: ${names.slice(0, NAMES_MAX).map((n, i) => html`<code key=${i}>${n}</code> `)}${more > 0 && `and ${more} more`}</p>
    <label class="check"><input type="checkbox" checked=${yes.value === hash} onChange=${(/** @type {any} */ e) => { yes.value = e.target.checked ? hash : ''; }} /><span>I have looked at them, and want them</span></label></div></div>`;
}
