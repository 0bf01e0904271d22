// A text field for messages. It grows with its text and keeps unsent text until the page is closed.

import { useLayoutEffect, useRef, useSignal } from './lib.js';

const HEIGHT_MAX_PX = 180;
const touch = matchMedia('(pointer: coarse)');

/** Enter sends a message; on a touch screen it adds a line. @param {KeyboardEvent} e */
const isSend = (e) => e.key === 'Enter' && !e.isComposing && !e.shiftKey && (!touch.matches || e.ctrlKey || e.metaKey);

/**
 * Unsent text. Offer sends it and reports whether it was accepted. Rejected text returns to the field,
 * before the text written meanwhile.
 * @param {Map<string, string>} drafts what was begun and not sent
 * @param {string} name of whom it is said to
 * @param {number} bytesMax
 * @param {(words: string) => Promise<boolean>} offer
 */
export function useWords(drafts, name, bytesMax, offer) {
  const text = useSignal(drafts.get(name) ?? '');
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const size = text.value.length * 3 > bytesMax ? new TextEncoder().encode(text.value).length : 0;

  useLayoutEffect(() => {
    const el = field.current;
    if (!el) return;
    el.style.height = 'auto';
    el.style.height = `${Math.min(HEIGHT_MAX_PX, el.scrollHeight + 2)}px`;
  }, [text.value]);

  const write = (/** @type {string} */ words) => {
    text.value = words;
    if (words) drafts.set(name, words); else drafts.delete(name);
  };
  const send = async () => {
    const words = text.value;
    write('');
    if (!await offer(words)) write(words + (text.value ? `\n${text.value}` : '')); // rejected text is not lost
    field.current?.focus();
  };
  /** Handles the keys of the field. @param {() => Promise<void>} go */
  const keys = (go) => ({
    onKeyDown: (/** @type {KeyboardEvent} */ e) => { if (isSend(e)) { e.preventDefault(); void go(); } },
    onKeyPress: (/** @type {KeyboardEvent} */ e) => { if (isSend(e)) e.preventDefault(); },
  });
  return { text, field, size, long: size > bytesMax, write, send, keys };
}
