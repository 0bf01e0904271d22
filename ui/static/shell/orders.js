// Orders from buttons: one at a time. A failure is shown next to its button, with the server's
// reason, until it is dismissed.

import { Refusal } from './api.js';
import { signal } from './lib.js';
import { live } from './connection.js';
import { plain } from './text.js';
import { spoken } from './router.js';

/** The key of the order that waits for an answer; empty: none. */
export const asked = signal('');
/** Why orders failed, by the key of the button. */
export const faults = signal(/** @type {Record<string, string>} */ ({}));

/** @param {string} key */
export function clearFault(key) {
  const { [key]: _, ...others } = faults.peek();
  faults.value = others;
}

/** @param {unknown} err @returns {string} */
export function reasonOf(err) {
  const reason = err instanceof Refusal ? err.body.reason : '';
  const text = plain(reason || (err instanceof Error ? err.message : err), 400);
  return err instanceof Refusal ? `Refused: ${text}` : text;
}

/**
 * @template T @param {string} key @param {string} words @param {() => Promise<T>} ask
 * @param {{done?: (answer: T) => void, after: () => void}} then after: in any case
 * @returns {Promise<boolean>} was it done?
 */
export async function order(key, words, ask, then) {
  if (asked.peek() || !live.peek()) return false;
  clearFault(key);
  asked.value = key;
  try {
    const answer = await ask(); // a function, so that no request starts while another order waits
    then.done?.(answer);
    spoken.value = words;
    return true;
  } catch (err) {
    faults.value = { ...faults.peek(), [key]: reasonOf(err) };
    return false;
  } finally {
    asked.value = '';
    then.after();
  }
}
