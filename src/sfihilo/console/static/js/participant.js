// The participant's page: one question at a time, and a stop that is sent until it arrives.

import { Panel, byId, el, icon } from "./dom.js";
import { buttonsChanged, guarded } from "./guard.js";
import { Live, getJson } from "./live.js";
import { Outbox } from "./outbox.js";
import { speak, t } from "./texts.js";

const main = new Panel(byId("main"));
const page = { view: null, linked: true, signedOut: false, side: null, late: null, stopArrived: null };

const answers = new Outbox("participant", {
  onChange: draw,
  onStored: (entry) => {
    const answered = page.view !== null && entry.what === `answer ${page.view.trial}`;
    if (answered) page.view = { ...page.view, state: "answered" };
    live.fetch();
  },
  onRefused: (entry) => {
    if (entry.what.startsWith("answer")) page.late = page.view?.trial ?? 0;
    live.fetch();
  },
});
const stops = new Outbox("participant.stop", {
  onChange: draw,
  onStored: () => {
    page.stopArrived = Date.now();
    live.fetch();
  },
  onRefused: () => {},
  refuses: () => false, // a stop is sent until the server takes it
});
const live = new Live("/api/participant/events", { refresh, onLink });

async function refresh() {
  const { status, body } = await getJson("/api/participant");
  page.signedOut = status === 401 || status === 403;
  if (status === 200) {
    if (body.trial !== page.view?.trial || body.state !== page.view?.state) page.side = null;
    if (page.late !== null && body.state === "question" && body.trial !== page.late) page.late = null;
    if (!body.stopped && page.view?.stopped) page.stopArrived = null;
    page.view = body;
    answers.hurry();
    stops.hurry();
  }
  draw();
  return status === 200;
}

function onLink(linked) {
  page.linked = linked;
  draw();
}

function answer(choice, strength) {
  const { trial } = page.view;
  answers.add(`answer ${trial}`, "/api/participant/choose", { trial, choice, strength });
}

function draw() {
  drawLink();
  drawStop();
  const screen = screenOf();
  const changed = main.show([document.documentElement.lang, screen, page.view?.grades, page.view?.requested, page.late], () =>
    [lateWords(), ...SCREENS[screen.name](screen)].filter(Boolean),
  );
  if (!changed) return;
  buttonsChanged();
  const heading = byId("heading");
  byId("said").textContent = heading?.textContent ?? "";
  if (screen.name === "question" || screen.name === "strength") heading.focus({ preventScroll: true });
}

/** Which screen is due: what was clicked here goes before what the server said last. */
function screenOf() {
  const { view, signedOut, side } = page;
  if (signedOut) return { name: "signedOut" };
  if (view === null) return { name: "connecting" };
  if ((view.stopped && view.state === "paused") || stops.entries.length > 0) return { name: "stopped", arrived: stops.entries.length === 0 };
  if (answers.has(`answer ${view.trial}`) && view.state === "question") {
    return { name: "sending", trouble: answers.trouble !== null || !page.linked };
  }
  if (view.state === "question" && side !== null) return { name: "strength", side };
  return { name: view.state, trial: view.trial };
}

const SCREENS = {
  connecting: () => words("connecting"),
  signedOut: () => words("signed_out"),
  wait: () => words("wait", "wait_more"),
  walk: () => words("walk", "walk_more"),
  answered: () => words("answered", "answered_more", "check"),
  paused: () => words("paused", "paused_more"),
  over: () => words("over", "over_more", "check"),
  stopped: ({ arrived }) => (arrived ? words("stopped", "stopped_more", "stop") : words("stop_sending", null, "stop")),
  sending: ({ trouble }) => words(trouble ? "kept" : "sending"),
  question,
  strength,
};

function words(heading, more = null, sign = null) {
  return [
    el("div", { class: "words" },
      sign && el("div", { class: `sign sign-${sign}` }, icon(sign)),
      el("h2", { id: "heading", tabindex: "-1", text: t(`participant.${heading}`) }),
      more && el("p", { text: t(`participant.${more}`) })),
  ];
}

function lateWords() {
  return page.late === null ? null : el("p", { class: "late", text: t("participant.late") });
}

function question() {
  const graded = page.view.grades > 2;
  const pick = (choice) => guarded(() => {
    if (!graded) answer(choice, null);
    else page.side = choice;
    draw();
  });
  return [
    el("h2", { id: "heading", tabindex: "-1", text: t("participant.question") }),
    el("div", { class: "pair" },
      button("answer-previous", "previous", "big previous", pick("previous")),
      button("answer-new", "new", "big new", pick("new"))),
    el("div", { class: "others" },
      button("answer-same", "same", "other", guarded(() => answer("same", null))),
      button("answer-cannot", "cannot", "other", guarded(() => answer(null, null)))),
    again(),
  ];
}

function strength({ side }) {
  const offered = page.view.answers.filter((each) => each.choice === side && each.strength !== null);
  const strongestFirst = offered.sort((a, b) => b.strength - a.strength);
  return [
    el("h2", { id: "heading", tabindex: "-1", text: t("participant.how_much") }),
    el("p", { class: "side", text: t(`participant.how_much_${side}`) }),
    el("div", { class: "strengths" }, strongestFirst.map((each) =>
      el("button", {
        type: "button", id: `strength-${each.strength}`, class: `big ${side}`,
        text: t(`participant.words.${each.word}`),
        onclick: guarded(() => answer(side, each.strength)),
      }))),
    button("back", "back", "other", guarded(() => {
      page.side = null;
      draw();
    })),
  ];
}

function again() {
  if (page.view.requested || answers.has(`again ${page.view.trial}`)) {
    return el("p", { class: "asked" }, icon("check"), el("span", { text: t("participant.again_asked") }));
  }
  return button("again", "again", "other", guarded(() =>
    answers.add(`again ${page.view.trial}`, "/api/participant/again", {})), "again");
}

function button(id, text, style, act, sign = null) {
  return el("button", { type: "button", id, class: style, onclick: act },
    sign && icon(sign), el("span", { text: t(`participant.${text}`) }));
}

function drawLink() {
  const lost = !page.linked && !page.signedOut && page.view !== null;
  byId("link").className = lost ? "banner lost" : "";
  setText(byId("link"), lost ? t("participant.lost") : "");
}

function drawStop() {
  const waiting = stops.entries.length > 0;
  const kept = waiting && (stops.trouble !== null || !page.linked);
  const arrived = !waiting && page.stopArrived !== null;
  const said = waiting ? (kept ? "stop_kept" : "stop_sending") : arrived ? "stop_received" : null;
  setText(byId("stopping"), said ? t(`participant.${said}`) : "");
  byId("stopping").className = said ?? "";
  setText(byId("stop"), t("participant.stop"));
}

function setText(place, text) {
  if (place.textContent !== text) place.textContent = text;
}

function press() {
  page.stopArrived = null;
  if (!stops.add("stop", "/api/participant/stop", {})) stops.hurry();
  draw();
}

for (const each of byId("languages").querySelectorAll("button")) {
  each.addEventListener("click", async () => {
    if (!(await speak(each.dataset.language))) return;
    document.title = t("participant.title");
    for (const other of byId("languages").querySelectorAll("button")) {
      other.setAttribute("aria-pressed", String(other === each));
    }
    draw();
  });
}

/** The screen of a phone stays on while the page is seen, where the browser allows it. */
function stayAwake() {
  if (!document.hidden) navigator.wakeLock?.request("screen").catch(() => {});
}

byId("stop").addEventListener("click", press);
document.addEventListener("visibilitychange", stayAwake);
stayAwake();
draw();
stops.hurry();
answers.hurry();
live.connect();
