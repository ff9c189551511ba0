// Keeps a page up to date: server-sent events say only that something changed, the page then
// fetches what it shows. Without a sign of life the page says so and connects again by itself.

const SILENCE = 7000; // milliseconds without an event before the page asks by itself
const OFTEN = 60000; // what is shown also depends on the time: a long pause becomes a break
const PAUSES = [300, 700, 1500, 3000];
const FETCH_TIMEOUT = 8000;

export async function getJson(url) {
  const stop = new AbortController();
  const timer = setTimeout(() => stop.abort(), FETCH_TIMEOUT);
  try {
    const response = await fetch(url, {
      signal: stop.signal,
      credentials: "same-origin",
      cache: "no-store",
      headers: { Accept: "application/json" },
    });
    const body = await response.json().catch(() => null);
    return { status: response.status, body };
  } catch {
    return { status: 0, body: null };
  } finally {
    clearTimeout(timer);
  }
}

export class Live {
  /** `refresh` fetches and shows, and returns whether that worked; `onLink` hears true or false. */
  constructor(url, { refresh, onLink }) {
    this.url = url;
    this.refresh = refresh;
    this.onLink = onLink;
    this.attempt = 0;
    this.busy = false;
    this.again = false;
    this.heard = Date.now();
    addEventListener("online", () => this.connect());
    addEventListener("offline", () => this.lost());
    addEventListener("pageshow", (event) => event.persisted && this.connect());
    document.addEventListener("visibilitychange", () => document.hidden || this.fetch());
    setInterval(() => Date.now() - this.heard > SILENCE && this.fetch(), 1000);
    setInterval(() => this.fetch(), OFTEN);
  }

  connect() {
    clearTimeout(this.timer);
    this.source?.close();
    this.heard = Date.now();
    this.source = new EventSource(this.url);
    const heard = () => {
      this.heard = Date.now();
      this.attempt = 0;
    };
    this.source.onopen = () => {
      heard();
      this.fetch();
    };
    this.source.onmessage = heard;
    this.source.addEventListener("alive", heard);
    this.source.addEventListener("changed", () => {
      heard();
      this.fetch();
    });
    this.source.onerror = () => this.lost();
  }

  lost() {
    this.source?.close();
    this.onLink(false);
    clearTimeout(this.timer);
    const pause = PAUSES[Math.min(this.attempt, PAUSES.length - 1)];
    this.attempt += 1;
    this.heard = Date.now();
    this.timer = setTimeout(() => {
      this.connect();
      this.fetch(); // a stream does not say why it is refused; the answer to a request does
    }, pause);
  }

  /** One fetch at a time; a change that arrives meanwhile leads to one more. */
  async fetch() {
    if (this.busy) {
      this.again = true;
      return;
    }
    this.busy = true;
    let linked;
    do {
      this.again = false;
      this.heard = Date.now();
      linked = await this.refresh();
      this.onLink(linked);
    } while (this.again);
    this.busy = false;
    if (!linked) this.lost();
  }
}
