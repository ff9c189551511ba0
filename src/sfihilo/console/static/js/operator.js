// The operator's page: what the session waits for, large; everything else around it.

import { Advice } from "./operator/advice.js";
import { Banners } from "./operator/banners.js";
import { Dialogs } from "./operator/dialogs.js";
import { Person } from "./operator/person.js";
import { Plots } from "./operator/plots.js";
import { Stage } from "./operator/stage.js";
import { Top } from "./operator/top.js";
import { Trials } from "./operator/trials.js";
import { Live, getJson } from "./live.js";
import { Outbox } from "./outbox.js";

// Actions that are right whatever else happened meanwhile, so they do not name the event they saw.
const ANYTIME = new Set(["note", "seen", "device", "apply", "interrupt"]);

const session = document.body.dataset.session;
const base = `/api/sessions/${encodeURIComponent(session)}`;

const page = {
  session,
  base,
  view: null,
  missing: null, // why there is nothing to show
  linked: true,
  clock: 0, // the server's clock minus ours, in milliseconds
  known: 0, // number of the last event that the server told us of
  refusals: [],
  stored: [], // who wants to hear of what the server stored
  act,
  stop,
  redraw: draw,
  /** While something is being saved, and until the page shows what came of it. */
  get busy() {
    return actions.entries.length > 0 || page.known > (page.view?.last ?? 0);
  },
  get readOnly() {
    return page.view?.read_only ?? document.body.dataset.role !== "operator";
  },
};

const actions = new Outbox(`operator.${session}`, {
  onChange: draw,
  onStored: (entry, body) => {
    page.known = body?.last ?? 0;
    for (const hear of page.stored) hear(entry);
    live.fetch();
  },
  onRefused: (entry, status, body) => {
    page.known = body?.last ?? 0;
    page.refusals.push({ action: entry.what, status, ...body });
    live.fetch();
  },
});
const stops = new Outbox(`operator.${session}.stop`, {
  onChange: draw,
  onStored: () => live.fetch(),
  onRefused: () => {},
  refuses: () => false,
});
page.actions = actions;
page.stops = stops;

const dialogs = new Dialogs(page);
page.dialogs = dialogs;
const parts = [new Banners(page), new Top(page), new Stage(page), new Person(page), new Advice(page), new Trials(page), new Plots(page)];
const live = new Live(`${base}/events`, { refresh, onLink });

/** One click: kept with its key, then sent until the server stored or refused it. */
function act(action, body = {}) {
  if (page.busy) return false;
  const expected = ANYTIME.has(action) ? {} : { expected: page.view.last };
  page.refusals = [];
  return actions.add(action, `${base}/${action}`, { ...body, ...expected });
}

function stop() {
  if (!stops.add("stop", `${base}/stop`, { why: "stopped by the operator" })) stops.hurry();
}

async function refresh() {
  const before = Date.now();
  const { status, body } = await getJson(base);
  if (status === 200) {
    page.clock = Date.parse(body.now) - (before + Date.now()) / 2;
    page.view = body;
    page.missing = null;
    actions.hurry();
    stops.hurry();
  } else if (status >= 400 && status < 500) {
    page.missing = status;
  } else if (body?.stopped && page.view !== null) {
    page.view = { ...page.view, stopped: body.stopped }; // the record cannot be read, but it was stopped
  }
  draw();
  return status === 200;
}

function onLink(linked) {
  page.linked = linked;
  draw();
}

function draw() {
  for (const part of parts) part.draw();
}

// Leaving while something is not saved needs a second thought; what waits stays in this tab.
addEventListener("beforeunload", (event) => {
  if (actions.trouble !== null || stops.entries.length > 0) event.preventDefault();
});

draw();
actions.hurry();
stops.hurry();
live.connect();
