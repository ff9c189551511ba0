// What a person clicked and the server has not acknowledged yet. Each click is kept in
// sessionStorage with its own key before it is sent, and sent again until the server answers: the
// same key is stored once however often it arrives. Whatever is refused is shown, never dropped.

const PAUSES = [300, 700, 1500, 3000, 5000]; // milliseconds between two attempts
const TIMEOUT = 30000;
const REFUSED = (status) => status >= 400 && status < 500 && ![401, 408, 425, 429].includes(status);

export function newKey() {
  if (crypto.randomUUID) return crypto.randomUUID();
  // randomUUID exists only on secure origins; the insecure mode has none.
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export class Outbox {
  /** `name` separates queues: a stop never waits behind an answer. */
  constructor(name, { onChange, onStored, onRefused, refuses = REFUSED }) {
    this.place = `sfihilo.outbox.${name}`;
    this.onChange = onChange;
    this.onStored = onStored;
    this.onRefused = onRefused;
    this.refuses = refuses;
    this.attempt = 0;
    this.sending = false;
    this.timer = null;
    this.trouble = null; // why the oldest entry is still here: "network", "signedout", or a status
    addEventListener("online", () => this.hurry());
    addEventListener("pageshow", () => this.hurry());
  }

  get entries() {
    try {
      return JSON.parse(sessionStorage.getItem(this.place) ?? "[]");
    } catch {
      return [];
    }
  }

  keep(entries) {
    sessionStorage.setItem(this.place, JSON.stringify(entries));
    this.onChange(this);
  }

  has(what) {
    return this.entries.some((entry) => entry.what === what);
  }

  /** Keeps one request and sends it; the same `what` that still waits is not queued twice. */
  add(what, url, body) {
    const entries = this.entries;
    if (entries.some((entry) => entry.what === what)) return false;
    this.keep([...entries, { what, url, body, key: newKey(), since: Date.now() }]);
    this.hurry();
    return true;
  }

  discard() {
    this.trouble = null;
    this.keep([]);
  }

  hurry() {
    this.attempt = 0;
    clearTimeout(this.timer);
    this.send();
  }

  async send() {
    const entry = this.entries[0];
    if (this.sending || entry === undefined) return;
    this.sending = true;
    this.onChange(this);
    const answer = await post(entry);
    this.sending = false;
    if (answer.ok || this.refuses(answer.status)) {
      this.attempt = 0;
      this.trouble = null;
      // The page hears of it first, so that it never shows the state before the click again.
      if (answer.ok) this.onStored(entry, answer.body);
      else this.onRefused(entry, answer.status, answer.body);
      this.keep(this.entries.filter((other) => other.key !== entry.key));
      this.send();
      return;
    }
    this.trouble = answer.status === 401 ? "signedout" : answer.status || "network";
    this.onChange(this);
    const pause = PAUSES[Math.min(this.attempt, PAUSES.length - 1)];
    this.attempt += 1;
    this.timer = setTimeout(() => this.send(), pause);
  }
}

async function post({ url, body, key }) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), TIMEOUT);
  try {
    const response = await fetch(url, {
      method: "POST",
      headers: { "Content-Type": "application/json", "Idempotency-Key": key },
      body: JSON.stringify({ ...body, key }),
      signal: stop.signal,
      credentials: "same-origin",
      cache: "no-store",
    });
    const text = await response.text();
    return { ok: response.ok, status: response.status, body: parsed(text) };
  } catch {
    return { ok: false, status: 0, body: null };
  } finally {
    clearTimeout(timer);
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}
