// What agents used: asked for while somebody looks, and again when the journal says so.

import * as api from '../shell/api.js';
import { signal } from '../shell/lib.js';
import { Question } from '../shell/refetch.js';
import { place } from '../shell/router.js';

export const usage = signal(/** @type {api.UsageTable | null} */ (null));
export const usageWrong = signal('');

/** Reports come often; nobody reads faster. */
const AGAIN_MS = 3000;

const table = new Question(async () => {
  try {
    usage.value = await api.usage();
    usageWrong.value = '';
  } catch (err) { usageWrong.value = err instanceof Error ? err.message : String(err); }
}, AGAIN_MS);

export function lookAtUsage() { if (place.peek() === 'usage') table.want(true); }

export function refreshUsage() { if (place.peek() === 'usage') table.want(); }

export function forgetUsage() { usage.value = null; }
