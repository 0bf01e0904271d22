// Usage: requested while its page is open, and again after changes.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { Refetch } from '../shell/refetch.js';
import { place } from '../shell/router.js';

export const usage = signal(/** @type {api.UsageTable | null} */ (null));
export const usageWrong = signal('');

/** Least time between two requests; reports are frequent. */
const AGAIN_MS = 3000;

const table = new Refetch(async () => {
  try {
    usage.value = await api.usage();
    usageWrong.value = '';
  } catch (err) { usageWrong.value = err instanceof Error ? err.message : String(err); }
}, AGAIN_MS);

export function openUsage() { if (place.peek() === 'usage') table.want(true); }

export function refreshUsage() { if (place.peek() === 'usage') table.want(); }

export function forgetUsage() { usage.value = null; }
