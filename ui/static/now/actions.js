// What a person does on the page Now besides answering, which inbox/ does.

import { batch } from '../shell/lib.js';
import { choose, go, showRun, showTask } from '../shell/router.js';

/** Opens what a row is about. @param {{run?: import('../shell/api.js').RunView, run_id?: string, step_id?: string, title?: string, agent?: string}} row */
export function open(row) {
  if (row.run?.task || (row.run_id && row.title)) return showTask(row.run?.run_id ?? row.run_id ?? '');
  if (row.run || row.run_id) return showRun(row.run?.run_id ?? row.run_id ?? '', row.step_id ?? '');
  batch(() => { go('agents'); choose(row.agent ?? ''); });
}
