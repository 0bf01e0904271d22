// The form of an agent, and the entry of fairlead.yaml that it stands for. Pure.

/** @typedef {import('../shell/api.js').AgentEntry} AgentEntry */
/** @typedef {{key: keyof AgentEntry, label: string, kind: 'text' | 'area' | 'list' | 'count' | 'money' | 'check' | 'choice', hint?: string, choices?: string[], at: string}} Field at: where the server finds a fault of it, below the agent */

/** What people change often. @type {Field[]} */
export const FIELDS = [
  { key: 'driver', label: 'Driver', kind: 'choice', choices: ['exec', 'acp', 'claude', 'codex', 'script'], at: 'driver' },
  { key: 'command', label: 'Command: the program and its arguments, one a line', kind: 'list', at: 'command' },
  { key: 'description', label: 'What it is for, in one sentence', kind: 'text', hint: 'Writes and changes code', at: 'description' },
  { key: 'workspace', label: 'Folder in which it works', kind: 'text', hint: 'a folder named like the agent', at: 'workspace' },
  { key: 'model', label: 'Model', kind: 'text', hint: 'as its program chooses', at: 'model' },
  { key: 'session_prompt', label: 'What it is told at the start of a session', kind: 'area', at: 'session_prompt' },
];
/** The rest of the form. @type {Field[]} */
export const MORE = [
  { key: 'can_write', label: 'Files that it may write, one pattern a line', kind: 'list', hint: 'everything in its folder', at: 'permissions.can_write' },
  { key: 'sandbox', label: 'Sandbox', kind: 'choice', choices: ['workspace', 'required', 'auto', 'off'], at: 'sandbox' },
  { key: 'instances', label: 'Sessions at the same time', kind: 'count', hint: '3', at: 'instances' },
  { key: 'session_limit', label: 'Longest session', kind: 'text', hint: 'no limit; such as 2h', at: 'limits.session' },
  { key: 'tokens_per_day', label: 'Tokens a day', kind: 'count', hint: 'no limit', at: 'limits.tokens_per_day' },
  { key: 'cost_per_day_usd', label: 'USD a day', kind: 'money', hint: 'no limit', at: 'limits.cost_per_day_usd' },
  { key: 'env', label: 'Variables of Fairlead that it gets, one name a line', kind: 'list', at: 'env' },
  { key: 'script', label: 'File that driver script plays', kind: 'text', at: 'script' },
  { key: 'lead', label: 'Leads the crew', kind: 'check', at: 'lead' },
  { key: 'rest', label: 'All other keys, as YAML', kind: 'area', at: 'rest' },
];

/** @typedef {Record<string, string | boolean>} Values as typed */

/** The form of an entry. @param {AgentEntry} entry @returns {Values} */
export function valuesOf(entry) {
  /** @type {Values} */
  const values = {};
  for (const f of [...FIELDS, ...MORE]) {
    const v = entry[f.key];
    values[f.key] = f.kind === 'check' ? v === true : Array.isArray(v) ? v.join('\n') : v ? String(v) : '';
  }
  return values;
}

/** The entry that a form stands for, or what is wrong with it. @param {Values} values @returns {AgentEntry | string} */
export function entryOf(values) {
  /** @type {Record<string, unknown>} */
  const entry = {};
  for (const f of [...FIELDS, ...MORE]) {
    const v = values[f.key];
    if (f.kind === 'check') { if (v === true) entry[f.key] = true; continue; }
    const text = typeof v === 'string' ? v : '';
    if (f.kind === 'list') {
      const list = text.split('\n').filter((line) => line.trim() !== '');
      if (list.length > 0) entry[f.key] = f.key === 'command' ? list : list.map((line) => line.trim());
    } else if (f.kind === 'count' || f.kind === 'money') {
      if (!text.trim()) continue;
      const n = Number(text);
      if (!Number.isFinite(n) || n < 0 || (f.kind === 'count' && !Number.isSafeInteger(n))) return `${f.label}: ${f.kind === 'count' ? 'a whole number' : 'a number'}, please`;
      entry[f.key] = n;
    } else if (text.trim()) entry[f.key] = f.kind === 'area' ? text : text.trim();
  }
  return entry;
}

/** The faults of one field, and with no field those of no field. @template {{location?: string, message: string}} F @param {F[]} faults @param {string} agent @param {Field} [field] @returns {F[]} */
export function faultsOf(faults, agent, field) {
  const owner = (/** @type {F} */ x) => [...FIELDS, ...MORE].find((f) => x.location === `agents.${agent}.${f.at}` || x.location?.startsWith(`agents.${agent}.${f.at}.`) || x.location?.startsWith(`agents.${agent}.${f.at}[`));
  return faults.filter((x) => owner(x) === field);
}
