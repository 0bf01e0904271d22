// The words of the moment. Pure.

/** A time as a field for date and time wants it: local, without a zone. @param {number} ms */
export function fieldTime(ms) {
  const d = new Date(ms);
  if (Number.isNaN(d.getTime())) return '';
  const two = (/** @type {number} */ n) => String(n).padStart(2, '0');
  return `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}T${two(d.getHours())}:${two(d.getMinutes())}:${two(d.getSeconds())}`;
}
