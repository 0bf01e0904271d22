// The reducer: (what is known of an agent, a change of the journal) → what is known of it then.
// Pure: no signal, no clock, no request.
//
// A change carries the whole value of its entity, so the page shows a new status without asking
// the server. The result equals what GET /api/v1/agents answers at the same place in the
// journal; reducer_test.go in internal/test/uitest compares the two. Some fields come with the next
// snapshot only: evidence_age_ms, doubt, certainty, wall, unheld and holes, which the agent's shim is asked for;
// file_behind, which is about a file; description, which is in fairlead.yaml alone; disabled and
// over_limit, which changes of other entities decide. shell/status.js derives the status itself.

/** @typedef {import('./api.js').Agent} Agent */
/** @typedef {import('./api.js').Change} Change */
/** @typedef {{hold: boolean}} Team what an agent's view needs of the team */
/**
 * @typedef {object} Known
 * @property {Agent} agent as GET /api/v1/agents shows it
 * @property {any} control the value of the last control change; null before the first one
 * @property {{for: string}[] | null} queue requests for the agent's slot; null: not known
 * @property {any[] | null} open questions that wait for a person, the oldest first; null: not known
 * @property {any} limited the last limit of its provider; null before the first change
 * @property {boolean} complete false: a change needs a value that no snapshot carries; ask the server
 */

/** Requests of the queue that waiting_behind names; the same number as in core/team/slot.go. */
const BEHIND_SHOWN = 5;
const PAUSE = 'pause';

/** @type {Record<string, string>} */
const CURRENT = { continuous: 'continuous', backing_off: 'continuous', run_once: 'run_once', run_cleanup: 'run_cleanup' };
const RUNNING = new Set(['continuous', 'run_once', 'run_cleanup']);

/** The name after the first slash of an entity. @param {string} entity */
export const nameOf = (entity) => entity.slice(entity.indexOf('/') + 1);

/** Does a session go on after this change? @param {Change} ch */
export const isOpen = (ch) => ch.to === 'opened' || ch.to === 'running';

/** @param {Agent} agent from a snapshot @returns {Known} */
export const fromSnapshot = (agent) => ({
  agent, control: null, limited: null, complete: true,
  queue: agent.waiting_behind ? null : [],
  open: agent.asks ? null : [],
});

/** The agent whose view a change may alter; empty: none. @param {Change} ch @returns {string} */
export function agentOf(ch) {
  if (/^(control|session|agent)\//.test(ch.entity)) return nameOf(ch.entity).split('/')[0] ?? ''; // session/coder/2 is a slot of coder
  const placed = ch.data?.host?.lease?.session;
  if (ch.entity.startsWith('host/') && typeof placed === 'string' && !placed.includes('@')) return placed.slice(0, Math.max(0, placed.lastIndexOf('-')));
  const asked = ch.data?.question?.question?.agent;
  return ch.entity.startsWith('question/') && typeof asked === 'string' ? asked : '';
}

/** What a change of the team says; null where it says nothing of the hold. @param {Change} ch */
export function teamOf(ch) {
  const set = ch.data?.team;
  return set ? { hold: set.hold?.on === true, note: String(set.hold?.note ?? ''), stopping: set.stopping === true } : null;
}

/**
 * One agent after one change about it.
 * @param {Known} was @param {Change} ch @param {Team} team as it is at this change @returns {Known}
 */
export function reduce(was, ch, team) {
  const body = ch.data ?? {};
  if (body.control?.value) return withControl(was, body.control.value, team);
  if (body.session) return withSession(was, ch, body.session);
  if (body.host?.lease) return withSessions(was, String(body.host.lease.session), { host: String(body.host.lease.host) });
  if (body.used) return withUsage(was, ch, body.used);
  if (body.queue) return waiting({ ...was, queue: body.queue.requests ?? [] });
  if (body.limited) return withLimit(was, body.limited);
  if (body.says) return withAgent(was, { says: { text: String(body.says.text ?? ''), at: body.says.at } });
  if (body.conversation) return withConversation(was, body.conversation);
  if (body.question?.question) return withRefetch(was, body.question.question);
  if (body.agent) return { ...was, complete: false }; // only fairlead.yaml has the description
  return was;
}

/** An agent after the hold of the team was set or lifted. @param {Known} was @param {Team} team @returns {Known} */
export function reduceHold(was, team) {
  if (was.agent.loop !== 'foreign') return withAgent(was, { held: team.hold && RUNNING.has(was.agent.desired_state) });
  if (was.control) return withControl(was, was.control, team);
  if (!team.hold) return { ...was, complete: false }; // the snapshot shows pause for whatever is wanted
  const a = was.agent;
  return withControl(was, { state: 'foreign', reported: a.current_state, stamp: a.timestamp, failures: a.failures, wish: { desired: a.desired_state, by: a.set_by, note: a.note, n: 1 } }, team);
}

/** @param {Known} was @param {Partial<Agent>} part @returns {Known} */
const withAgent = (was, part) => ({ ...was, agent: { ...was.agent, ...part } });

/** @param {unknown} time @returns {string | null} */
const moment = (time) => (typeof time === 'string' && time !== '' ? time : null);

/** agent_state.json as the journal has it (seed 000). @param {Known} was @param {any} value @param {Team} team @returns {Known} */
function withControl(was, value, team) {
  const wish = value.desired ?? {};
  const current = (value.state === 'foreign' ? value.reported : CURRENT[value.state] ?? PAUSE) || 'unknown';
  let desired = wish.n ? String(wish.desired ?? '') : PAUSE;
  let note = String(wish.note ?? '');
  const wanted = wish.unknown || !wish.desired ? PAUSE : wish.desired;
  if (team.hold && value.state === 'foreign' && wanted !== PAUSE) {
    note = `the team is held; ${desired} waits for the release`;
    desired = PAUSE;
  }
  const next = withAgent(was, {
    desired_state: desired, current_state: current, badge: RUNNING.has(current) ? 'RUNNING' : 'IDLE',
    held: team.hold && RUNNING.has(wanted), gave_up: moment(value.gave_up),
    set_by: wish.file ? 'file' : String(wish.by ?? ''), note, timestamp: value.stamp, failures: value.failures ?? 0,
    retry_at: was.agent.session ? null : moment(value.retry_at),
  });
  return waiting({ ...next, control: value });
}

/** What is shown of a process until its shim was asked. */
const NO_DOUBT = { doubt: '', certainty: 'known' };

/** @param {Known} was @param {Change} ch @param {any} s @returns {Known} */
function withSession(was, ch, s) {
  if (typeof s.id !== 'string') return was;
  const same = was.agent.session?.id === s.id;
  const slot = Number(s.slot ?? 0);
  const host = (was.agent.sessions ?? []).find((o) => o.id === s.id)?.host;
  const shown = { id: s.id, pid: s.pid ?? 0, started_at: moment(s.started_at), kind: String(s.kind ?? ''), phase: s.phase ?? ch.to, for: String(s.for ?? ''), slot, ...(host && { host }), ...(s.context_percent && { context_percent: Number(s.context_percent) }), ...(s.provider && { provider: s.provider }), ...(s.ending && { ending: String(s.ending) }) };
  const others = (was.agent.sessions ?? []).filter((o) => (o.slot ?? 0) !== slot);
  const sessions = isOpen(ch) ? [...others, shown].sort((a, b) => (a.slot ?? 0) - (b.slot ?? 0)) : others;
  const next = slot > 0
    ? withAgent(was, { sessions })
    : isOpen(ch)
    ? withAgent(was, {
      session: shown, sessions,
      denied: s.denied ?? 0, retry_at: null,
      evidence_age_ms: ch.to === 'running' ? 0 : null,
      ...(!same && NO_DOUBT),
    })
    : withAgent(was, { session: null, sessions, denied: 0, retry_at: was.control ? moment(was.control.retry_at) : was.agent.retry_at, evidence_age_ms: null, ...NO_DOUBT });
  const queue = isOpen(ch) && next.queue?.some((r) => r.for === s.for) ? next.queue.filter((r) => r.for !== s.for) : next.queue;
  return waiting({ ...next, queue });
}

/** A report of usage is added to its day (UTC). @param {Known} was @param {Change} ch @param {any} used @returns {Known} */
function withUsage(was, ch, used) {
  const more = used.usage ?? {};
  const at = Number(used.context_percent ?? used.stop?.context_percent ?? 0);
  if (at > 0) was = withSessions(was, String(used.session ?? ''), { context_percent: at });
  if (used.provider) was = withSessions(was, String(used.session ?? ''), { provider: used.provider.code ? used.provider : undefined });
  const before = more.day === ch.time.slice(0, 10) && was.agent.usage_today || {};
  const sum = (/** @type {'input_tokens' | 'output_tokens' | 'cost_usd'} */ k) => (before[k] ?? 0) + (more[k] ?? 0);
  if (more.day && more.day !== ch.time.slice(0, 10)) return was; // of a day that is over
  return withAgent(was, { usage_today: { input_tokens: sum('input_tokens'), output_tokens: sum('output_tokens'), cost_usd: sum('cost_usd') } });
}

/** Something more of one of its sessions. @param {Known} was @param {string} id @param {Partial<import('./api.js').OpenSession>} part @returns {Known} */
function withSessions(was, id, part) {
  const set = (/** @type {import('./api.js').OpenSession} */ s) => (s.id === id ? { ...s, ...part } : s);
  const { session, sessions } = was.agent;
  return withAgent(was, { session: session ? set(session) : session, sessions: sessions?.map(set) });
}

/** What an agent's provider said, as text. @param {any} limited */
const limitWords = (limited) => `rate limited until ${limited.until.slice(0, 10)} ${limited.until.slice(11, 19)}Z${limited.stated ? '' : ' (estimated: its provider names no time)'}`;

/** @param {Known} was @param {any} limited @returns {Known} */
function withLimit(was, limited) {
  const until = moment(limited.until);
  const next = withAgent(was, { limited_until: until, limited_why: until ? `${limitWords(limited)}: ${limited.why || 'no reason given'}` : undefined });
  return waiting({ ...next, limited });
}

/** @param {Known} was @param {any} c @returns {Known} */
function withConversation(was, c) {
  const open = was.agent.session;
  const shown = was.agent.conversation;
  // The conversation of the open session is shown; without one, the newest.
  if (open && c.session !== open.id && shown?.session_id === open.id) return was;
  const text = (/** @type {'program' | 'model' | 'mode' | 'enforced'} */ k) => (c[k] ? { [k]: String(c[k]) } : {});
  return withAgent(was, { conversation: { id: String(c.id ?? ''), session_id: String(c.session ?? ''), ...text('program'), ...text('model'), ...text('mode'), ...text('enforced'), resumed: c.resumed === true, at: c.at } });
}

/** A question as one sentence. @param {any} q */
function asksWhat(q) {
  const what = String(q.what ?? '');
  if (q.kind === 'permission') return `${q.agent} asks for permission: ${what || `use ${q.tool ?? ''}`}`;
  if (q.kind === 'resume' || q.kind === 'host_lost') return `${q.agent} waits: ${what}`;
  return `${q.agent} asks: ${what.split('\n')[0]}`;
}

/** @param {Known} was @param {any} q @returns {Known} */
function withRefetch(was, q) {
  const refused = q.state === 'answered' && q.kind === 'permission' && !q.allow && q.session === was.agent.session?.id;
  const next = refused ? withAgent(was, { denied: (was.agent.denied ?? 0) + 1 }) : was;
  if (!was.open) return { ...next, complete: false };
  const others = was.open.filter((o) => o.id !== q.id);
  const open = q.state === 'open' ? [...others, q].sort((a, b) => a.n - b.n) : others;
  return { ...withAgent(next, { asks: open.length, asks_what: open.length ? asksWhat(open[0]) : undefined }), open };
}

/** Sets waiting_behind from the queue and the open session. @param {Known} k @returns {Known} */
function waiting(k) {
  if (!k.queue) return { ...k, complete: false };
  const at = k.queue.findIndex((r) => r.for === 'control');
  let words = '';
  if (at >= 0) {
    const before = k.queue.slice(0, Math.min(at, BEHIND_SHOWN)).map((r) => r.for);
    const s = k.agent.session;
    if (!s && k.agent.sessions?.length) return { ...k, complete: false }; // only the server knows how many may run
    if (s) before.unshift(`${s.for} (${s.id})`);
    else if (k.agent.limited_until) {
      if (!k.limited) return { ...k, complete: false };
      before.unshift(`its provider: ${limitWords(k.limited)}`);
    }
    if (at > BEHIND_SHOWN) before.push(`${at - BEHIND_SHOWN} more`);
    words = before.length ? `it waits in the queue behind ${before.join(', ')}` : 'it is next in the queue';
  }
  return words === k.agent.waiting_behind ? k : withAgent(k, { waiting_behind: words });
}

/** Sessions kept in the list of an agent's past; the server keeps as many. */
const SESSIONS_MAX = 20;

/**
 * An agent's sessions after a change, the newest first.
 * @param {import('./api.js').Session[]} list @param {Change} ch @returns {import('./api.js').Session[]}
 */
export function reduceSessions(list, ch) {
  const s = ch.data?.session;
  if (!ch.entity.startsWith('session/') || typeof s?.id !== 'string') return list;
  const next = {
    id: s.id, kind: String(s.kind ?? ''), opened_at: s.opened_at, started_at: moment(s.started_at), ended_at: isOpen(ch) ? null : moment(s.ended_at),
    outcome: s.outcome ?? '', why: s.why ?? '', bytes: s.bytes ?? 0,
  };
  const at = list.findIndex((old) => old.id === s.id);
  return at < 0 ? [next, ...list].slice(0, SESSIONS_MAX) : list.with(at, { ...list[at], ...next });
}
