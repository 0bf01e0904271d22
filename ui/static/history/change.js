// One change of the journal, by its sequence.

import * as api from '../shell/api.js';
import { useEffect, useSignal } from '../shell/lib.js';

/** Reads one change. @param {number} seq @returns {Promise<import('../shell/api.js').Change | null>} */
export async function changeAt(seq) {
  if (!Number.isSafeInteger(seq) || seq < 1) return null;
  const { changes } = await api.journal({ after: seq - 1, limit: 1 });
  return changes?.[0]?.seq === seq ? changes[0] : null;
}

/** @param {number} seq @returns {{change: import('../shell/api.js').Change | null, wrong: string}} */
export function useChange(seq) {
  const state = useSignal(/** @type {{change: import('../shell/api.js').Change | null, wrong: string}} */ ({ change: null, wrong: '' }));
  useEffect(() => {
    let gone = false;
    state.value = { change: null, wrong: '' };
    if (seq > 0) {
      changeAt(seq).then((change) => { if (!gone) state.value = { change, wrong: change ? '' : `There is no change ${seq} in this journal.` }; },
        (err) => { if (!gone) state.value = { change: null, wrong: err instanceof Error ? err.message : String(err) }; });
    }
    return () => { gone = true; };
  }, [seq]);
  return state.value;
}
