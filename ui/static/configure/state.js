// Which agent of fairlead.yaml a person changes.

import { batch, signal } from '../shell/lib.js';
import { dialog } from '../shell/router.js';

/** @typedef {'add' | 'edit' | 'remove'} Op */

export const change = signal({ op: /** @type {Op} */ ('add'), name: '' });

/** Opens the dialog. @param {Op} op @param {string} [name] the agent; a new one has none yet */
export function configure(op, name = '') {
  batch(() => { change.value = { op, name }; dialog.value = 'agent'; });
}
