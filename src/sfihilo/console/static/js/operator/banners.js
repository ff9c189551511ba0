// What the operator must not miss: nothing saved, no connection, a stop, a wish of the participant.

import { Panel, byId, el, icon } from "../dom.js";
import { shortNumbers } from "../numbers.js";
import { sound } from "../sound.js";
import { t } from "../texts.js";
import { eventWords } from "./top.js";

export class Banners {
  constructor(page) {
    this.page = page;
    this.panel = new Panel(byId("banners"));
    this.title = document.title;
    this.alarms = "";
  }

  draw() {
    const { view, linked, actions, stops, missing } = this.page;
    const facts = {
      missing,
      linked,
      waiting: actions.trouble === null ? null : actions.entries.map((entry) => entry.what),
      stopping: stops.entries.length > 0,
      trouble: stops.trouble,
      stopped: view?.stopped ?? null,
      requests: view?.requests ?? [],
      refusals: this.page.refusals,
      device: view && view.device.state === "silent" ? view.device : null,
    };
    this.panel.show(facts, () => this.build(facts));
    this.alarm(facts);
  }

  /** A sound and the tab's title for those who look elsewhere. */
  alarm({ stopped, requests, stopping }) {
    const alarms = JSON.stringify([stopped?.at, requests.length > 0, stopping]);
    if (alarms !== this.alarms && (stopped || stopping)) sound("alarm");
    else if (alarms !== this.alarms && requests.length > 0) sound("call");
    this.alarms = alarms;
    const sign = stopped || stopping ? `■ ${t("operator.stop")} – ` : requests.length > 0 ? "● " : "";
    document.title = sign + this.title;
  }

  build(facts) {
    return [
      facts.missing && banner("lost", t(facts.missing === 404 ? "operator.no_session" : "operator.signed_out"),
        el("a", { class: "button", href: facts.missing === 404 ? "/" : "/enter", text: t("operator.sign_in") })),
      facts.waiting && banner("lost pulse", t("operator.not_saved", { what: facts.waiting.map(actionWord).join(", ") }),
        el("button", { type: "button", text: t("operator.discard"), onclick: () => this.page.actions.discard() })),
      !facts.missing && !facts.linked && banner("lost", t("operator.lost")),
      facts.stopping && banner("stop", t(facts.trouble === null ? "operator.stop_sending" : "operator.stop_not_sent")),
      facts.stopped && !facts.stopping && this.stopped(facts.stopped),
      facts.requests.length > 0 && banner("again", t("operator.again"), ...this.againButtons()),
      facts.device && banner("stop", t("operator.device_silent", { name: facts.device.name ?? "" }), el("span", { text: facts.device.message ?? "" })),
      ...facts.refusals.map((refusal) => this.refused(refusal)),
    ].filter(Boolean);
  }

  stopped({ by, why, recorded }) {
    const words = [t(`operator.stopped_${by}`), by === "device" ? why : "", recorded ? "" : t("operator.stop_not_recorded")];
    return banner("stop pulse", words.filter(Boolean).join(" "));
  }

  againButtons() {
    if (this.page.readOnly) return [];
    return [el("button", { type: "button", id: "seen", text: t("operator.again_seen"), onclick: () => this.page.act("seen") })];
  }

  refused(refusal) {
    const changes = (refusal.changes ?? []).map(eventWords).join(", ");
    const stale = refusal.error === "stale";
    const why = stale ? t("operator.changed_elsewhere", { changes }) : refusalWords(refusal.error);
    return banner("refused", t("operator.refused", { what: actionWord(refusal.action), why }),
      !stale && refusal.message && el("span", { class: "detail", lang: "en", text: shortNumbers(refusal.message) }),
      ["suggest", "place"].includes(refusal.action) && el("button", {
        type: "button", id: "change", text: t("operator.change"), onclick: () => this.page.dialogs.settings(refusal.action),
      }),
      el("button", {
        type: "button",
        text: t("common.understood"),
        onclick: () => {
          this.page.refusals = this.page.refusals.filter((other) => other !== refusal);
          this.draw();
        },
      }));
  }
}

/** Why something was refused, in the words of the page; the library's own words stand beside it. */
function refusalWords(error) {
  const path = `operator.refusals.${error}`;
  const words = t(path);
  return words === path ? t("operator.refusals.refused") : words;
}

function actionWord(action) {
  return t(`operator.actions.${action}`);
}

function banner(kind, words, ...more) {
  return el("div", { class: `banner ${kind}` },
    icon(kind.startsWith("stop") ? "stop" : kind === "again" ? "again" : "warning"),
    el("span", { class: "words", text: words }), ...more);
}
