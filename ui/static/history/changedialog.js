// The dialog for a link to a change that belongs to no agent.

import { html } from '../shell/lib.js';
import { Sheet } from '../shell/dialogs.js';
import { dialog, spot } from '../shell/router.js';
import { plain } from '../shell/text.js';
import { useChange } from './change.js';
import { ChangeRow, Said } from './tab.js';

export function ChangeDialog() {
  return dialog.value === 'change' ? html`<${OneChange} />` : null;
}

function OneChange() {
  const { change, wrong } = useChange(Number(spot.value));
  return html`<${Sheet} title="One change" wide>${change ? html`<p><code>${plain(change.entity, 128)}</code></p><ol class="change-list"><${ChangeRow} change=${change} /></ol><${Said} change=${change} />` : html`<p class="soft">${wrong ? plain(wrong, 300) : 'Reading\u2026'}</p>`}<//>`;
}
