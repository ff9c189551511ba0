// Numbers as people type and read them.

/** A finite number from text with a decimal point or comma, or null. */
export function parseNumber(text) {
  const plain = text.trim().replace(/[\u2212\u2013]/g, "-");
  if (!/^[-+]?(\d+([.,]\d*)?|[.,]\d+)(e[-+]?\d+)?$/i.test(plain)) return null;
  const value = Number(plain.replace(",", "."));
  return Number.isFinite(value) ? value : null;
}

/** A message with numbers of at most four digits. */
export function shortNumbers(text) {
  return text.replace(/\d+\.\d{4,}/g, (number) => String(Number(Number(number).toPrecision(4))));
}
