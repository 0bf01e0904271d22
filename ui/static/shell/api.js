// The client of the API: every request of the page goes through here.
//
// There are two kinds of errors. A Refusal is an answer: the current state does not allow the
// order, and the server says what it allows. A Failure is everything else, with a way out in its
// message.

import { asOf, polls } from './connection.js';
import { proof, refused } from './signin.js';
const BASE = '/api/v1';

/** @typedef {'pause' | 'continuous' | 'run_once' | 'run_cleanup'} State */
/** @typedef {'start' | 'stop' | 'once' | 'cleanup'} Verb */

/**
 * @typedef {object} Agent
 * @property {string} name
 * @property {string} [description]
 * @property {string} driver
 * @property {'fairlead' | 'foreign'} [loop]
 * @property {string} desired_state
 * @property {string} current_state
 * @property {'RUNNING' | 'IDLE'} badge
 * @property {string} [status] as the server derived it; shell/status.js derives it again after a change
 * @property {string} [status_why]
 * @property {string} [idle_reason]
 * @property {boolean} [program] loop foreign: Fairlead keeps its program running
 * @property {boolean} [held] it should run, and the hold prevents that
 * @property {boolean} [disabled]
 * @property {string} [over_limit]
 * @property {string | null} [gave_up]
 * @property {string} [presence]
 * @property {string} [set_by]
 * @property {string} [note]
 * @property {string} [timestamp]
 * @property {OpenSession | null} [session] of slot 0
 * @property {OpenSession[]} [sessions] of all slots
 * @property {string} [certainty]
 * @property {number | null} [evidence_age_ms]
 * @property {string} [doubt]
 * @property {number} [failures]
 * @property {string | null} [retry_at]
 * @property {string} [waiting_behind]
 * @property {{input_tokens?: number, output_tokens?: number, cost_usd?: number} | null} [usage_today]
 * @property {{session?: string, tokens_per_day?: number, cost_per_day_usd?: number, team_tokens_per_day?: number, team_cost_per_day_usd?: number, memory_bytes?: number, processes?: number, disk_bytes?: number} | null} [limits]
 * @property {boolean} [removed]
 * @property {Record<string, string> | null} [turn] by channel: the state in it
 * @property {number} [asks] questions of it that wait for a person
 * @property {string} [asks_what] the oldest of them
 * @property {string | null} [limited_until] its provider's rate limit resets at this time
 * @property {string} [limited_why]
 * @property {{text: string, at: string} | null} [says] what it says it is at
 * @property {{id?: string, session_id?: string, model?: string, mode?: string, program?: string, enforced?: string, resumed?: boolean, at?: string} | null} [conversation]
 * @property {string} [wall] namespaces, landlock or nothing; left out: not known
 * @property {string[]} [unheld] what its wall does not hold
 * @property {string[]} [holes] openings in its wall, a sentence each
 * @property {{host: string, reached: number, refused: number, in: number, out: number, first: string, last: string}[]} [contacts] hosts of the network, the newest last
 * @property {number} [denied] what it was denied in the session that is open
 */

/** @typedef {{what: string, source: string, at?: string, age_ms?: number | null, holds: boolean}} Evidence */
/** @typedef {{memory_bytes?: number, processes?: number, processor_ms?: number, disk_bytes?: number}} Use */
/** @typedef {{id: string, pid?: number, started_at: string | null, kind: string, for?: string, phase?: string, ending?: string, slot?: number, ports?: number[], use?: Use, host?: string, context_percent?: number, provider?: {code: string, why?: string, since?: string}}} OpenSession */
/** @typedef {{id: string, kind: string, opened_at?: string, started_at?: string | null, ended_at?: string | null, outcome?: string, why?: string, bytes?: number}} Session */
/** @typedef {{agent: Agent, evidence?: Evidence[] | null, verdict?: string, sessions?: Session[] | null, layers?: {name: string, holds: boolean, text: string}[] | null}} Why */
/** @typedef {{seq: number, time: string, machine: string, entity: string, row: string, from: string, to: string, trigger: string, actor?: {kind: string, id: string}, data?: any}} Change */
/** @typedef {{hold: boolean, hold_note?: string, stopping: boolean, head: number, team?: string, agents: Agent[] | null, as_of?: string, no_leader_since?: string}} Team */
/** @typedef {{type: string, offset?: number, text?: string, tool?: string, part?: boolean, input_tokens?: number, output_tokens?: number, cost_usd?: number, ok?: boolean, reason?: string, detail?: string, conversation?: any, until?: string}} Fact */
/** @typedef {{pending: number, running: number, waiting_on_human: number, completed: number, failed: number, skipped: number}} Counts */
/**
 * @typedef {object} StepView
 * @property {string} id
 * @property {string} [agent]
 * @property {string} status
 * @property {number} attempts
 * @property {number} iteration_count
 * @property {string | null} [started_at]
 * @property {string | null} [ended_at]
 * @property {string} [last_error]
 * @property {string} [waits_for]
 * @property {string[] | null} needs
 * @property {string} [loop_back_to]
 * @property {boolean} [human_in_the_loop]
 * @property {string} [blocked_by_loop]
 * @property {string} [session]
 * @property {string} [host] of that session
 * @property {string} [last_session]
 * @property {string} [report_path]
 * @property {string} [log_path]
 * @property {string} [prompt_path]
 * @property {string} [manual_input_path]
 * @property {string} [input_schema]
 * @property {string} [bad_input]
 * @property {string[] | null} [artifacts]
 * @property {Record<string, string> | null} [metrics]
 * @property {string[] | null} [logs]
 * @property {number} [loop_index]
 * @property {number} [loop_items]
 * @property {number} [loop_done]
 * @property {{by: string, by_file: boolean, tree?: string, hash_given: boolean, words: string} | null} [answer] the record of a person's answer
 * @property {string} [cut] what of its report is only in its file, because of a limit
 * @property {string} [denied] what its agent asked for and was not allowed, where it was done all the same
 */
/**
 * @typedef {object} RunView
 * @property {string} run_id
 * @property {string} workflow_name
 * @property {string} status
 * @property {string} stage
 * @property {string} [repo_dir]
 * @property {string} [run_state]
 * @property {string} created_at
 * @property {string} updated_at
 * @property {string[] | null} [waits]
 * @property {string} [by]
 * @property {string} [why]
 * @property {number} [cost_usd] of all its sessions
 * @property {Counts} counts
 * @property {TaskView} [task] only of a run that is a task
 * @property {StepView[] | null} [steps]
 */
/** @typedef {{id: string, title: string, agent: string, status: string, why?: string, failed_step?: string, branch: string, worktree: string, base: string, run_id: string, host?: string, after?: string[], files_changed: number, landed_commit?: string, checkout?: string, pull_request?: string, landing?: {failed: 'conflict' | 'checks' | 'dirty' | 'moved', files?: string[]}, asked?: {tree: string, commit: string, from: string, governing_hash?: string, governing?: string[], told?: string[], round?: number, unchanged?: boolean} | null, overlaps?: TaskOverlap[], created_at: string, updated_at: string}} TaskView */
/** @typedef {{name: string, old_name?: string, status: string, added: number, deleted: number, binary?: boolean, governing?: boolean, old_mode?: string, new_mode?: string}} TaskFile */
/** @typedef {{kind: 'same' | 'add' | 'del' | 'hunk' | 'note', old?: number, new?: number, t: {c?: string, x: string, m?: boolean}[] | null, more_bytes?: number}} ChangedRow */
/** @typedef {{rows: ChangedRow[] | null, binary?: boolean, crlf?: boolean, more_rows?: number, too_large?: boolean}} ChangedRows */
/** @typedef {{command: string, state: 'passed' | 'failed' | 'not_run', took_ms?: number, ended_at?: string, output?: string, base?: boolean}} TaskCheck */
/** @typedef {{id: string, subject: string, author: string, at: string}} TaskCommit */
/** @typedef {{text: string, base: string, land: string, from: string, to: string, shown?: string, tree?: string, governing_hash?: string, told?: string[], unchanged?: boolean, overlaps?: TaskOverlap[], live: boolean, files: TaskFile[], more_files?: number, commits: TaskCommit[], round: number, rounds: {round: number, commit: string}[], requests: {round: number, text: string}[], comments: TaskComment[], checks: TaskCheck[], attachments: {name: string, image?: string}[]}} TaskChanges */
/** @typedef {{id: string, status: string, files: string[], more_files?: number}} TaskOverlap another open task that changes the same files */
/** @typedef {{id: number, file?: string, line?: number, old?: boolean, quote?: string, text: string, round?: number, sent?: number, state?: 'open' | 'changed' | 'resolved', at?: {file: string, line?: number, old?: boolean}, about?: string[]}} TaskComment sent: the round whose request has sent it; at: its place in what is shown, if that is not gone */
/** @typedef {{name: string, bytes: number, text?: string, cut?: boolean, why?: string}} InboxFile */
/** @typedef {{step_id: string, agent?: string, status: string, artifacts?: string[] | null, metrics?: Record<string, string>, logs?: string[] | null}} InboxStep */
/**
 * @typedef {object} InboxItem
 * @property {string} id
 * @property {string} kind step, permission, question, resume, failed, run, limit, branch, config, fetch
 * @property {string} run_id
 * @property {string} step_id
 * @property {string} workflow_name
 * @property {string} since
 * @property {string} why
 * @property {string[] | null} [blocks] tasks and agents that wait for it
 * @property {string} [manual_input_path]
 * @property {string} [input_schema]
 * @property {string} [bad_input]
 * @property {string[] | null} [artifacts]
 * @property {string[] | null} [logs]
 * @property {string} [agent]
 * @property {string} [session_id]
 * @property {Asked | null} [question]
 * @property {TaskView} [task]
 * @property {string} [error]
 * @property {Record<string, string>} [metrics]
 * @property {InboxStep[]} [made]
 * @property {InboxFile[]} [files]
 * @property {string[]} [then]
 * @property {string} [back_to]
 * @property {string} [shown] goes with the answer
 * @property {{governing: string, files: string[] | null, diff: string}} [unconfirmed] config: the change
 */
/** @typedef {{agent?: string, session_id?: string, status: string, status_why?: string, purpose?: string, host?: string, run_id?: string, step_id?: string, workflow_name?: string, title?: string, since: string | null, last?: string, last_at?: string | null, says?: string, context_percent?: number, files_changed?: number, tokens_today?: number, cost_usd_today?: number}} Work a session or a step that runs */
/** @typedef {'once' | 'session' | 'always'} Scope */
/**
 * @typedef {object} Asked a question of an agent
 * @property {string} id
 * @property {string} kind permission, question, resume
 * @property {string} agent
 * @property {string} [session_id]
 * @property {string} state
 * @property {string} [what]
 * @property {string} [why]
 * @property {string} [tool]
 * @property {string} [call]
 * @property {string[] | null} [paths]
 * @property {string[] | null} [hints]
 * @property {string[] | null} [differs]
 * @property {{id: string, kind?: string, label?: string}[] | null} [options]
 * @property {boolean} [free_text]
 * @property {boolean} [may_stand]
 * @property {string} asked_at
 * @property {string | null} [expires_at]
 * @property {string} [otherwise]
 */
/** @typedef {{allow: boolean, option?: string, text?: string, scope: Scope}} AnswerBody */
/** @typedef {{id: string, agent: string, session_id?: string, tool: string, call?: string, allow: boolean, by: string, at: string}} SavedAnswer */
/** @typedef {{agent?: string, day?: string, run_id?: string, workflow_name?: string, title?: string, model?: string, sessions?: number, input_tokens?: number, output_tokens?: number, cost_usd?: number}} UsageRow */
/**
 * @typedef {object} NoticeTarget a receiver of notices
 * @property {string} name
 * @property {string} kind
 * @property {string[] | null} events
 * @property {string} [quiet]
 * @property {string} state reached or failing
 * @property {string} [failing_since]
 * @property {string} [cause]
 * @property {string} [way_out]
 * @property {number} waiting
 * @property {number} left_out_last_hour
 */
/** @typedef {{agents: UsageRow[] | null, days: UsageRow[] | null, runs: UsageRow[] | null, models?: UsageRow[] | null, total?: UsageRow, budgets?: Budget[] | null}} UsageTable */
/** @typedef {{agent?: string, measure: string, limit: number, used: number, forecast?: number}} Budget */
/** @typedef {{session: string, agent: string, run?: string, step?: string, since: string, on_lost: string}} PlacedSession */
/** @typedef {{session: string, agent: string, run?: string, step?: string, what: string, kept: string, at: string}} LateReport */
/** @typedef {{session: string, agent: string, run?: string, step?: string, why: string}} WaitingSession */
/**
 * @typedef {object} Host a machine on which sessions run
 * @property {string} name
 * @property {string} state joined, doubted, lost, draining, left
 * @property {string} why
 * @property {boolean} [leader]
 * @property {string[]} labels
 * @property {number} capacity
 * @property {PlacedSession[]} sessions
 * @property {string} [version]
 * @property {number} [protocol]
 * @property {string} [foreign] why its version and the leader's cannot work together
 * @property {string} [address]
 * @property {boolean} [engine] it also keeps the journal
 * @property {boolean} connected
 * @property {number} lease_age_ms -1: no renewal was seen
 * @property {string} joined_at
 * @property {string} [doubted_at]
 * @property {string} [lost_at]
 * @property {string} [drained_by]
 * @property {string} [removed_by]
 * @property {PlacedSession[]} missing sessions that were lost with it: what they left there is fetched when it is back
 * @property {LateReport[]} late
 */
/** @typedef {{host: string, in_sync: boolean, lacks?: number}} JournalCopy */
/** @typedef {{on: boolean, team?: string, leader?: string, replicated?: boolean, unreplicated?: {code: string, hosts: string[], fault?: string, wrong: boolean, why: string}, copies?: JournalCopy[], hosts: Host[], waiting: WaitingSession[], mixed?: string}} Hosts */
/** @typedef {'queue' | 'interrupt' | 'inject' | 'parallel'} Mode */
/** @typedef {{name: string, state: string, connected: boolean, disabled: boolean, crashed: boolean, foreign: boolean, limit: string, took: number, owed: boolean, working: boolean}} Member */
/** @typedef {{n: number, by: string, mode: string, state: string}} OpenMessage */
/**
 * @typedef {object} Entry one line of a conversation
 * @property {number} seq
 * @property {string} at
 * @property {string} kind human, turn, aside, late, moved, notice, warning
 * @property {number} [n]
 * @property {string} [by]
 * @property {string} [text]
 * @property {number} [turn]
 * @property {number} [re]
 * @property {string} [mode]
 * @property {string} [state]
 * @property {string} [agent]
 * @property {string} [from]
 * @property {string} [to]
 * @property {string} [row]
 * @property {string} [trigger]
 */
/**
 * @typedef {object} Channel
 * @property {string} name
 * @property {string[] | null} queue
 * @property {string} holder
 * @property {string} state ACTIVE, WAITING, PARKED
 * @property {string | null} deadline
 * @property {number} messages
 * @property {number} turn
 * @property {string | null} since
 * @property {string} why
 * @property {string} parked
 * @property {string} mode
 * @property {string} lead
 * @property {number} rounds_max
 * @property {number} timeout_ms
 * @property {{agent: string, message: number, deadline: string | null} | null} aside
 * @property {Member[] | null} agents
 * @property {OpenMessage[] | null} open
 * @property {boolean} configured
 * @property {Entry | null} [last]
 */
/** @typedef {{entries: Entry[] | null, more: boolean, head: number}} EntryPage */
/** @typedef {{seq: number, channel?: Channel}} Ordered */
/** @typedef {{eyes: string, mouth: string}} FaceWords */
/**
 * @typedef {object} Document one agent of the crew, as seed 001 spells it, with its id
 * @property {string} id
 * @property {string} status hatching, alive, sleeping, unknown, expired
 * @property {string | null} name
 * @property {string} color
 * @property {string} colorName
 * @property {string} gender
 * @property {number} gridPosition
 * @property {FaceWords | null} faceVariant
 * @property {string} individuationArtifact
 * @property {string} createdAt
 * @property {string | null} lastAliveAt
 * @property {string | null} lastSessionId
 */
/** @typedef {{agent: string, session: string, state: string, why: string, reported_at: string | null, seat: number}} CrewLead state: asleep, waits, starting, unheard, heard */
/** @typedef {{at: string, kind: string, text: string, session: string}} CrewNotice kind: fault, ignored, refused, silent, lead */
/** @typedef {{button: string, in_progress: string, agents: Document[] | null, lead: CrewLead, size: number, notices: CrewNotice[] | null, souls_left_out?: number, head: number}} Crew */
/** @typedef {{seq: number, at: string, session: string, speaker: string, kind: string, channel: string, text: string}} Said kind: lead, agent, human */
/** @typedef {{messages: Said[] | null, more: boolean, next?: number, head: number}} SaidPage */
/**
 * @typedef {object} DispatchRow one session, in a list
 * @property {string} name
 * @property {string} path
 * @property {string} mode orchestrator, interactive, response
 * @property {string} host none, claude, fairlead
 * @property {string} phase ready, talking, working, queue, serving, closed
 * @property {string} state MAIN, QUEUE or an agent's name
 * @property {string | null} began
 * @property {string | null} changed_at
 * @property {string} ended why it is closed
 * @property {string} conversation the one that is open
 * @property {number} conversations
 * @property {number} waiting
 * @property {number} denied
 * @property {string} fault why it cannot be read
 */
/** @typedef {{line: number, at: string, row: string, type: string, from: string, to: string, shown: string, trigger: string, conversation: string, actor: {kind: string, id: string}, foreign: boolean}} DispatchLine */
/** @typedef {{can_write: string[] | null, cannot_write: string[] | null, can_execute: string[] | null, cannot_execute: string[] | null}} Permissions */
/** @typedef {{path: string, output: string, summary: string}} DispatchFile output: its name below outputs/; empty: it is elsewhere */
/** @typedef {{n: number, id: string, began: string | null, summary: string, open: boolean, agents: string[] | null, files: DispatchFile[] | null, more_files: number}} DispatchConversation */
/** @typedef {{at: string, conversation: string, by: string, tool: string, call: string, row: string, reason: string, delegate_to: string, capability: string, then: DispatchLine | null}} DispatchDenial */
/** @typedef {{id: number, agent: string, by: string, text: string, began: string}} DispatchTask */
/** @typedef {{text: string, agent: string, at: string}} DispatchWaiting */
/** @typedef {{best: string, reason: string, threshold: number, terms: string[] | null, scores: {name: string, score: number, terms: {word: string, score: number}[] | null}[] | null}} Ranking */
/**
 * @typedef {object} DispatchView one session in full
 * @property {DispatchRow} session
 * @property {DispatchLine[] | null} lines the oldest first
 * @property {number} lines_left_out
 * @property {Permissions} permissions of the state it is in
 * @property {{name: string, description: string, file: string}[] | null} agents
 * @property {DispatchTask[] | null} at_work
 * @property {DispatchConversation[] | null} conversations the newest first
 * @property {DispatchDenial[] | null} denials the newest first
 * @property {DispatchWaiting[] | null} waiting
 * @property {{input: string, ranking: Ranking} | null} ranking of the last input
 * @property {{name: string, holds: boolean, text: string}[] | null} layers what held MAIN to its permissions
 * @property {string[] | null} waits_for what keeps an agent from beginning
 * @property {string[] | null} notes what people should know of its files
 */
/** @typedef {DispatchConversation & {dialogue: string, dialogue_bytes: number, dialogue_left_out: number, outputs: {name: string, bytes: number, changed_at: string}[] | null, outputs_left_out: number, notes: string[] | null}} DispatchDialogue */
/** @typedef {Record<string, string | number | boolean | {text: string, agent?: string, base?: string}>} RunFlags as in the API */
/** @typedef {{message: string, location?: string}} Fault */
/** @typedef {{subject?: string, event?: string, state?: string, row?: string, reason?: string, takes?: string[]}} RefusalBody */

/** The current state does not allow the order. */
export class Refusal extends Error {
  /** @param {string} message @param {RefusalBody} body */
  constructor(message, body) {
    super(message);
    this.body = body;
  }
}

/** The request failed; status is 0 without an answer. */
export class Failure extends Error {
  /** @param {string} message @param {number} status @param {Fault[]} [faults] everything that is wrong with what was sent */
  constructor(message, status, faults = []) {
    super(message);
    this.status = status;
    this.faults = faults;
  }
}

/** How far the server's clock is ahead of the browser's, in milliseconds; ages and countdowns need it. */
export const skew = { ms: 0 };

/** @param {Response} response */
function learnSkew(response) {
  const date = Date.parse(response.headers.get('date') ?? '');
  const ahead = date - Date.now();
  // The header has whole seconds, so a difference below two seconds is rounding.
  skew.ms = Number.isFinite(ahead) && Math.abs(ahead) > 2000 ? ahead : 0;
}

/** @param {string} path @param {RequestInit} [init] @returns {Promise<Response>} */
async function ask(path, init) {
  /** @type {Response} */
  let response;
  const sent = proof();
  try {
    response = await fetch(BASE + path, { cache: 'no-store', ...init, headers: { ...init?.headers, ...sent } });
  } catch (cause) {
    if (init?.signal?.aborted) throw cause;
    throw new Failure('Fairlead did not answer. Is it running? Start it with: fairlead up', 0);
  }
  learnSkew(response);
  if (response.ok) return response;
  /** @type {any} */
  let problem = {};
  try { problem = await response.json(); } catch { /* without a problem document the status must do */ }
  const words = String(problem.detail || problem.title || `the server answered ${response.status}`);
  if (response.status === 409) throw new Refusal(words, problem.refusal ?? {});
  if (response.status === 401) refused(sent.Authorization);
  throw new Failure(words, response.status, Array.isArray(problem.errors) ? problem.errors : []);
}

/** @template T @param {string} path @param {AbortSignal} [signal] @returns {Promise<T>} */
const get = async (path, signal) => (await ask(path, { signal })).json();

/** Reads what the journal has, as of the moment that the page shows. @template T @param {string} path @param {AbortSignal} [signal] @returns {Promise<T>} */
const kept = (path, signal) => get(asOf.peek() > 0 ? `${path}${path.includes('?') ? '&' : '?'}at=${asOf.peek()}` : path, signal);

/** @template T @param {string} path @param {object} body @returns {Promise<T>} */
const post = async (path, body) =>
  (await ask(path, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) })).json();

/** Saves an answer as a file. A link could not: it sends no header. @param {string} path @param {string} file */
async function save(path, file) {
  const url = URL.createObjectURL(await (await ask(path)).blob());
  const link = document.createElement('a');
  link.href = url;
  link.download = file;
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 60_000);
}

const name = encodeURIComponent;

/** An agent's entry of fairlead.yaml. @typedef {{description?: string, driver?: string, command?: string[], script?: string, workspace?: string, model?: string, session_prompt?: string, instances?: number, can_write?: string[], sandbox?: string, session_limit?: string, tokens_per_day?: number, cost_per_day_usd?: number, env?: string[], lead?: boolean, rest?: string}} AgentEntry */
/** @typedef {{op: 'add' | 'edit' | 'remove', name: string, agent?: AgentEntry, sum?: string}} AgentChange */
/** @typedef {{name: string, title: string, driver: string, command: string[] | null, path?: string}} ConfigProgram */
/** @typedef {{sum: string, diff: string, changes: string[] | null, notes: string[] | null}} AgentPreview */
/** @typedef {{changes: string[] | null, fault?: string}} AgentWritten */
/** @typedef {{ok: boolean, what: string, do?: string}} AgentFinding */
/** @returns {Promise<{names: string[], programs: ConfigProgram[] | null, why?: string}>} */
export const configAgents = () => get('/config/agents');
/** @param {string} agent @returns {Promise<{agent: AgentEntry, sum: string}>} */
export const configAgent = (agent) => get(`/config/agents/${name(agent)}`);
/** @param {AgentChange} c @returns {Promise<AgentPreview>} */
export const previewAgent = (c) => post('/config/preview', c);
/** @param {AgentChange} c @returns {Promise<AgentWritten>} */
export const writeAgent = (c) => post('/config/write', c);
/** @param {AgentChange} c @returns {Promise<{ok: boolean, findings: AgentFinding[] | null}>} */
export const testAgent = (c) => post('/config/test', c);
/** The team as of a time. @param {string} time @returns {Promise<Team>} */
export const teamAt = (time) => get('/agents?at=' + encodeURIComponent(time));
/** The number of the newest change, whatever moment is shown. */
export const newest = async () => /** @type {{head: number}} */ (await get('/journal?limit=1')).head;
export const team = () => /** @type {Promise<Team>} */ (kept('/agents'));
/** @param {string} agent @param {AbortSignal} [signal] @returns {Promise<Why>} */
export const why = (agent, signal) => kept(`/agents/${name(agent)}`, signal);
/** @param {string} agent @param {Verb} verb @param {string} note @returns {Promise<{seq: number, agent: Agent}>} */
export const command = (agent, verb, note) => post(`/agents/${name(agent)}/${verb}`, note ? { note } : {});
/** @param {boolean} on @param {string} note @returns {Promise<{seq: number, hold: boolean}>} */
export const hold = (on, note) => post(on ? '/hold' : '/unhold', note ? { note } : {});
/** Confirms a changed fairlead.yaml. @param {string} governing the hash of what was shown @returns {Promise<{changes: string[]}>} */
export const confirmConfig = (governing) => post('/reload', { governing });
/** @param {{after?: number, limit?: number, entity?: string, tail?: number, agent?: string, since?: string, until?: string}} query @returns {Promise<{changes: Change[] | null, head: number, next?: number}>} */
export const journal = (query) =>
  kept('/journal?' + new URLSearchParams(Object.entries(query).map(([k, v]) => [k, String(v)])));
/** @param {string} session @param {AbortSignal} [signal] @param {{from?: number, tail: number}} [where] @returns {Promise<{facts: Fact[] | null}>} */
export const facts = (session, signal, where = { tail: 2000 }) => get(`/sessions/${name(session)}/facts?` + new URLSearchParams(Object.entries(where).map(([k, v]) => [k, String(v)])), signal);
/** @typedef {{kind: string, entity: string, part?: string, agent?: string, at: string, seq?: number, offset?: number, snippet: string, matches: [number, number][] | null, link: string}} SearchResult */
/** @typedef {{results: SearchResult[] | null, next: number, stopped: string, took_ms: number, index: {seq: number, behind: number, as_of: string | null, dropped: number, dropped_until: string | null}}} SearchPage */
/** @param {{q: string, limit: number, before?: number}} query @param {AbortSignal} signal @returns {Promise<SearchPage>} */
export const search = (query, signal) => get('/search?' + new URLSearchParams(Object.entries(query).map(([k, v]) => [k, String(v)])), signal);
export const machines = () => /** @type {Promise<{machines: {name: string, rows: {id: string, why?: string, event?: string, from?: string}[] | null}[] | null}>} */ (get('/machines'));
export const status = () => /** @type {Promise<{version?: string, pid?: number, started_at?: string, dir?: string}>} */ (get('/status'));

/** @returns {Promise<{runs: RunView[] | null}>} */
export const runs = () => kept('/runs');
/** @param {string} id @returns {Promise<RunView>} */
export const run = (id) => kept(`/runs/${name(id)}`);
/** @param {string} id @param {{from?: string, to?: string}} between commits; none: everything @returns {Promise<TaskChanges>} */
export const taskChanges = (id, between) => get(`/runs/${name(id)}/changes?` + new URLSearchParams(between));
/** @param {string} id @param {string} from @param {string} to @param {number} n of the file in the list @returns {Promise<ChangedRows>} */
export const taskFile = (id, from, to, n) => get(`/runs/${name(id)}/changes/${n}?` + new URLSearchParams({ from, to }));
/** An image that was given with a task, as an address for an element; a link to the server would send no header. @param {string} id @param {string} file @returns {Promise<string>} */
export async function taskImage(id, file) {
  const blob = await (await ask(`/runs/${name(id)}/attachments/${name(file)}`)).blob();
  return dataURL(blob);
}

/** @param {Blob} blob @returns {Promise<string>} */
export const dataURL = (blob) => new Promise((done, fail) => {
  const reader = new FileReader();
  reader.onload = () => done(String(reader.result));
  reader.onerror = () => fail(reader.error);
  reader.readAsDataURL(blob);
});

/** @typedef {{comments: TaskComment[] | null}} Comments */
/** @param {string} id @param {{file: string, line: number, old: boolean, quote: string, text: string}} one @returns {Promise<Comments>} */
export const addComment = (id, one) => post(`/runs/${name(id)}/comments`, one);
/** @param {string} id @param {number} n @param {string} text @returns {Promise<Comments>} */
export const changeComment = (id, n, text) => post(`/runs/${name(id)}/comments/${n}`, { text });
/** @param {string} id @param {number} n @param {boolean} resolved @returns {Promise<Comments>} */
export const resolveComment = (id, n, resolved) => post(`/runs/${name(id)}/comments/${n}`, { resolved });
/** @param {string} id @param {number} n @returns {Promise<Comments>} */
export const removeComment = async (id, n) => (await ask(`/runs/${name(id)}/comments/${n}`, { method: 'DELETE' })).json();
/** @param {string} id @param {{text: string, shown: string}} body @returns {Promise<{seq: number}>} */
export const requestTask = (id, body) => post(`/runs/${name(id)}/request`, body);
/** @param {string} id @param {{tree?: string, governing?: string}} body @returns {Promise<{seq: number}>} */
export const mergeTask = (id, body) => post(`/runs/${name(id)}/merge`, body);
/** @param {string} id @returns {Promise<{task?: string}>} */
export const undoTask = (id) => post(`/runs/${name(id)}/undo`, {});
/** @param {string} id @returns {Promise<{ref: string}>} */
export const dropTask = (id) => post(`/runs/${name(id)}/drop`, {});
/** @typedef {{id: string, dir: string, name: string, address: string, origins: string[] | null, needs_you: number, working: number, agents: number, hold: boolean, stopping: boolean, here: boolean, problem?: string, detail?: string}} Repository */
/** @typedef {{repositories: Repository[] | null, more: number, outside: boolean}} Repositories */
/** @returns {Promise<Repositories>} */
export const repositories = () => get('/repositories');
/** @param {string} id @returns {Promise<{url: string}>} */
export const repositoryLogin = (id) => post(`/repositories/${name(id)}/login`, {});
/** @returns {Promise<{items: InboxItem[] | null}>} */
export const inbox = () => kept('/inbox');
/** @returns {Promise<{working: Work[] | null}>} */
export const working = () => kept('/working');
/** @typedef {{path: string, name?: string, description?: string, steps?: number, agents?: string[], asks?: string[], fault?: string}} Workflow */
/** @returns {Promise<{workflows: Workflow[] | null, more?: boolean}>} */
export const workflows = () => get('/workflows');
/** @param {RunFlags} flags @returns {Promise<RunView>} */
export const startRun = (flags) => post('/runs', flags);
/** @param {string} id @param {RunFlags} flags @returns {Promise<RunView>} */
export const resumeRun = (id, flags) => post(`/runs/${name(id)}/resume`, flags);
/** @param {string} id @param {'cancel' | 'pause' | 'release'} verb @param {{step?: string, note?: string}} body @returns {Promise<{seq: number}>} */
export const orderRun = (id, verb, body) => post(`/runs/${name(id)}/${verb}`, body);
/** @param {string} id @param {string} step @param {boolean} yes @param {{note?: string, input?: string, shown?: string}} body @returns {Promise<{seq: number}>} */
export const answerStep = (id, step, yes, body) => post(`/runs/${name(id)}/steps/${name(step)}/${yes ? 'approve' : 'reject'}`, body);

/** @param {string} id @param {AnswerBody} body @returns {Promise<{seq: number}>} */
export const answerQuestion = (id, body) => post(`/questions/${name(id)}/answer`, body);
/** @returns {Promise<{saved: SavedAnswer[] | null}>} */
export const savedAnswers = () => kept('/saved-answers');
/** @param {string} id @returns {Promise<{seq: number}>} */
export const revokeAnswer = async (id) => (await ask(`/saved-answers/${name(id)}`, { method: 'DELETE' })).json();
/** @param {string} agent @returns {Promise<{seq: number}>} */
export const endAgentSession = (agent) => post(`/agents/${name(agent)}/end`, {});
/** @param {string} agent @returns {Promise<{seq: number}>} */
export const retryAgent = (agent) => post(`/agents/${name(agent)}/retry`, {});
/** Makes a port of a running session reachable for this browser. @param {string} of an agent, a session or a task @param {number} port @returns {Promise<{url: string, address: string, session: string}>} */
export const openPort = (of, port) => post(`/agents/${name(of)}/port`, { port });
/** @returns {Promise<{targets: NoticeTarget[] | null}>} */
export const noticeTargets = () => get('/notify');

/** @param {string} id @returns {Promise<Asked>} */
export const question = (id) => get(`/questions/${name(id)}`);
/** @typedef {{kind: string, of?: string, at: string, text: string, page: string, seq?: number}} DigestLine */
/** @typedef {{since: string, until: string, lines: DigestLine[] | null, more?: number, cost_usd: number, tokens: number, files_changed: number, landed: number, cut?: boolean, first?: boolean}} Digest */
/** @returns {Promise<Digest>} */
export const digest = () => get('/digest');
/** @param {string} until the end of a digest @returns {Promise<object>} */
export const markSeen = (until) => post('/seen', { until });

/** @returns {Promise<UsageTable>} */
export const usage = () => kept('/usage');
export const saveUsage = () => save('/usage/csv', 'usage.csv');

/** @returns {Promise<{channels: Channel[] | null, head: number}>} */
export const channels = () => kept('/channels');
/** @param {string} channel @returns {Promise<Channel>} */
export const channel = (channel) => kept(`/channels/${name(channel)}`);
/** @param {string} channel @param {{before?: number, after?: number, limit: number}} where by seq; neither: the newest @returns {Promise<EntryPage>} */
export const entries = (channel, where) =>
  kept(`/channels/${name(channel)}/entries?` + new URLSearchParams(Object.entries({ ...where, moves: true }).map(([k, v]) => [k, String(v)])));
/** @param {string} channel @param {string} text @param {string} mode @returns {Promise<{message_id: string, n: number, state: string, seq: number}>} */
export const say = (channel, text, mode) => post(`/channels/${name(channel)}/messages`, { text, mode });
/** @param {string} channel @param {'grant' | 'skip' | 'override' | 'members'} verb @param {object} body @returns {Promise<Ordered>} */
export const orderChannel = (channel, verb, body) => post(`/channels/${name(channel)}/${verb}`, body);
/** @param {string} channel @param {string} agent @returns {Promise<Ordered>} */
export const removeMember = async (channel, agent) => (await ask(`/channels/${name(channel)}/members/${name(agent)}`, { method: 'DELETE' })).json();
/** @param {string} agent @param {'enable' | 'disable'} verb @returns {Promise<{seq: number}>} */
export const ableAgent = (agent, verb) => post(`/agents/${name(agent)}/${verb}`, {});

export const hosts = () => /** @type {Promise<Hosts>} */ (kept('/hosts'));
/** @param {string} host @param {'drain' | 'remove'} verb @returns {Promise<{seq: number}>} */
export const orderHost = (host, verb) => post(`/hosts/${name(host)}/${verb}`, {});

export const crew = () => /** @type {Promise<Crew>} */ (kept('/crew'));
/** @param {string} id @returns {Promise<string>} */
export const soul = async (id) => (await ask(`/crew/agents/${name(id)}/soul`)).text();
/** @param {'summon' | 'wake' | 'sleep'} verb @param {object} body @returns {Promise<{seq: number, team: Crew}>} */
export const orderCrew = (verb, body) => post(`/crew/${verb}`, body);
/** @param {string} text of a file, as it came @returns {Promise<Document>} */
export const importDocument = async (text) =>
  (await ask(`/crew/import`, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: text })).json();
/** @param {Record<string, string | number>} query speaker, session, text; before or after, by seq; limit @returns {Promise<SaidPage>} */
export const transcript = (query) =>
  kept('/crew/transcript?' + new URLSearchParams(Object.entries(query).filter(([, v]) => v !== '' && v !== 0).map(([k, v]) => [k, String(v)])));

/** @returns {Promise<{sessions: DispatchRow[] | null}>} */
export const sessions = () => get('/dispatch');
/** @param {string} session @returns {Promise<DispatchView>} */
export const session = (session) => get(`/dispatch/${name(session)}`);
/** @param {string} session @param {number} n @returns {Promise<DispatchDialogue>} */
export const conversation = (session, n) => get(`/dispatch/${name(session)}/conversations/${n}`);
/** @param {Record<string, string>} body mode, host, path @returns {Promise<DispatchView>} */
export const startSession = (body) => post('/dispatch', body);
/** @param {string} session @param {string} text @returns {Promise<{conversation_id: string, state: string, workspace: string, waiting: number, now: DispatchView}>} */
export const sayToSession = (session, text) => post(`/dispatch/${name(session)}/input`, { text });
/** @param {string} session @returns {Promise<DispatchView>} */
export const endSession = (session) => post(`/dispatch/${name(session)}/end`, {});
/** @param {string} session @param {number} n @param {string} file */
export const saveOutputFile = (session, n, file) => save(outputFilePath(session, n, file), file);
/** @param {string} session @param {number} n @param {string} file @param {number} [limit] */
const outputFilePath = (session, n, file, limit) => `/dispatch/${name(session)}/conversations/${n}/outputs/${name(file)}${limit ? `?limit=${limit}` : ''}`;
/** The beginning of a file, as text. @param {string} session @param {number} n @param {string} file @param {number} limit @returns {Promise<string>} */
export const outputFile = async (session, n, file, limit) => (await ask(outputFilePath(session, n, file, limit))).text();

/** What makes a stream an answer that ends with the first news, if this page polls. */
const poll = () => (polls.peek() ? '&poll=true' : '');
/** @param {number} after */
export const streamURL = (after) => `${BASE}/events?after=${after}`;
/** @param {number} after */
export const eventsURL = (after) => streamURL(after) + poll();
/** @param {string} session @param {{from: number} | {tail: number}} where */
export const outputURL = (session, where) =>
  `${BASE}/sessions/${name(session)}/output/stream?` + ('from' in where ? `from=${where.from}` : `tail=${where.tail}`) + poll();
/** @param {string} session @param {string} file the name to save it under */
export const saveOutput = (session, file) => save(`/sessions/${name(session)}/output?from=0`, file);
