// What people order where a button stands: one thing at a time, and what was not done is said
// at its button, in the server's words, until it is put away.

import { Refusal } from './api.js';
import { signal } from './lib.js';
import { live } from './connection.js';
import { plain } from './text.js';
import { spoken } from './router.js';

/** What is asked and not yet answered. */
export const asked = signal('');
/** What was not done, by the key of its button. */
export const faults = signal(/** @type {Record<string, string>} */ ({}));

/** @param {string} key */
export function forgive(key) {
  const { [key]: _, ...others } = faults.peek();
  faults.value = others;
}

/** @param {unknown} err @returns {string} */
export function wordsOf(err) {
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
  forgive(key);
  asked.value = key;
  try {
    const answer = await ask(); // a call that is not made does not ask either
    then.done?.(answer);
    spoken.value = words;
    return true;
  } catch (err) {
    faults.value = { ...faults.peek(), [key]: wordsOf(err) };
    return false;
  } finally {
    asked.value = '';
    then.after();
  }
}
