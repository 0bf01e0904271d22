// Turns the JSON schema of a step's input into a form, and the form into an answer. Pure.
//
// A flat object of simple values becomes a form. For anything else the page asks for JSON, and
// the server validates it.

/** @typedef {{name: string, title: string, about: string, kind: 'text' | 'long' | 'number' | 'integer' | 'check' | 'choice', choices: (string | number | boolean | null)[], required: boolean, first: string | boolean}} Field */
/** @typedef {{fields: Field[], approved: boolean} | null} Form approved: the schema asks for the yes itself; null: no form fits */

/** Fields up to which a schema becomes a form. */
const FIELDS_MAX = 40;
const CHOICES_MAX = 100;
/** Characters shown of a name or a title. */
export const TITLE_MAX = 120;

/** @param {unknown} v @returns {v is Record<string, any>} */
const isObject = (v) => typeof v === 'object' && v !== null && !Array.isArray(v);

/** @param {string | undefined} text the schema, as JSON @returns {Form} */
export function formOf(text) {
  if (!text) return { fields: [], approved: false };
  let schema;
  try { schema = JSON.parse(text); } catch { return null; }
  if (!isObject(schema) || !isObject(schema.properties) || (schema.type !== undefined && schema.type !== 'object')) return null;
  if (['allOf', 'anyOf', 'oneOf', '$ref', 'if', 'not'].some((word) => word in schema)) return null;
  const required = new Set(Array.isArray(schema.required) ? schema.required.map(String) : []);
  const names = Object.keys(schema.properties);
  if (names.length > FIELDS_MAX) return null;
  const fields = [];
  for (const name of names) {
    if (name === 'approved') continue;
    const field = fieldOf(name, schema.properties[name], required.has(name));
    if (!field) return null;
    fields.push(field);
  }
  return { fields, approved: names.includes('approved') };
}

/** @param {string} name @param {unknown} schema @param {boolean} required @returns {Field | null} */
function fieldOf(name, schema, required) {
  if (!isObject(schema)) return null;
  const about = typeof schema.description === 'string' ? schema.description : '';
  const title = typeof schema.title === 'string' && schema.title ? schema.title : name;
  const base = { name, title, about, required, choices: [], first: '' };
  const given = schema.default;
  if (Array.isArray(schema.enum)) {
    if (schema.enum.length > CHOICES_MAX || schema.enum.some((v) => typeof v === 'object' && v !== null)) return null;
    const at = schema.enum.indexOf(given);
    return { ...base, kind: 'choice', choices: schema.enum, first: at >= 0 ? String(at) : '' };
  }
  switch (schema.type) {
    case 'string': return { ...base, kind: (schema.maxLength ?? 0) > 200 || schema.format === 'multiline' ? 'long' : 'text', first: typeof given === 'string' ? given : '' };
    case 'number': case 'integer': return { ...base, kind: schema.type, first: typeof given === 'number' ? String(given) : '' };
    case 'boolean': return { ...base, kind: 'check', first: given === true };
    default: return null;
  }
}

/** The value of a field; a field may be named like a property of every object. @param {Record<string, string | boolean>} values @param {Field} f */
export const held = (values, f) => (Object.hasOwn(values, f.name) ? values[f.name] : f.first);

/** Has a person changed the form? @param {Field[]} fields @param {Record<string, string | boolean>} values */
export const touched = (fields, values) => fields.some((f) => held(values, f) !== f.first);

/**
 * The answer as JSON, or the faults of the form.
 * @param {Field[]} fields @param {Record<string, string | boolean>} values by name
 * @returns {{answer: Record<string, unknown>, faults: {name: string, words: string}[]}}
 */
export function answerOf(fields, values) {
  /** @type {Record<string, unknown>} */
  const answer = Object.create(null); // a field may be called __proto__
  const faults = [];
  for (const f of fields) {
    const value = held(values, f);
    if (f.kind === 'check') { answer[f.name] = value === true; continue; }
    if (value === '' || (f.required && String(value).trim() === '')) {
      if (f.required) faults.push({ name: f.name, words: 'is needed' });
      continue;
    }
    if (f.kind === 'choice') answer[f.name] = f.choices[Number(value)];
    else if (f.kind === 'number' || f.kind === 'integer') {
      const n = Number(value);
      if (!Number.isFinite(n) || (f.kind === 'integer' && !Number.isInteger(n))) faults.push({ name: f.name, words: f.kind === 'integer' ? 'must be a whole number' : 'must be a number' });
      else answer[f.name] = n;
    } else answer[f.name] = String(value);
  }
  return { answer, faults };
}
