// Counts the walk from the moment that the record says, so that a reload or another tab agrees.

import { byId, el } from "../dom.js";
import { sound } from "../sound.js";
import { t } from "../texts.js";

const DEFAULT = 120; // seconds
const PLACE = "sfihilo.walk-seconds";
const AGAIN = (number) => `trial ${number}: walked again from the beginning`; // as `session run` notes it

export class Timer {
  constructor(page) {
    this.page = page;
    this.rang = null;
    setInterval(() => this.draw(), 250);
  }

  get seconds() {
    const own = Number(localStorage.getItem(PLACE));
    return own > 0 ? own : (this.page.view?.walk_seconds ?? DEFAULT);
  }

  element(trial) {
    const seconds = el("input", {
      id: "walk-seconds", type: "number", min: "1", max: "7200", value: this.seconds, inputmode: "numeric",
      onchange: (event) => {
        const typed = Number(event.target.value);
        if (typed > 0) localStorage.setItem(PLACE, String(typed));
        this.draw();
      },
    });
    const clockFace = el("div", { id: "clock", role: "timer", "aria-label": t("operator.clock") });
    if (this.page.view.device.name) {
      // The device says when the walk is over.
      return el("div", { class: "timer" }, clockFace);
    }
    return el("div", { class: "timer", data: { trial: trial.number } },
      clockFace,
      el("div", { class: "bar", "aria-hidden": "true" }, el("div", { id: "bar" })),
      el("p", { id: "clock-words" }),
      el("label", { class: "hint" }, el("span", { text: `${t("operator.walk_seconds")} ` }), seconds, ` ${t("operator.seconds")}`));
  }

  /** Milliseconds on our clock when the walk of a trial began. */
  began(trial) {
    const notes = this.page.view.notes.filter((note) => note.text === AGAIN(trial.number));
    const times = [trial.started_at ?? trial.asked_at, ...notes.map((note) => note.at)];
    return Math.max(...times.map((time) => Date.parse(time))) - this.page.clock;
  }

  restart(trial) {
    this.page.act("note", { text: AGAIN(trial.number) });
  }

  draw() {
    const place = byId("clock");
    const trial = this.page.view?.trial;
    if (place === null || !trial) return;
    const gone = Math.max(0, (Date.now() - this.began(trial)) / 1000);
    const over = gone >= this.seconds;
    place.textContent = clock(gone);
    if (byId("bar") === null) return;
    place.parentElement.classList.toggle("over", over);
    byId("bar").style.width = `${Math.min(100, (100 * gone) / this.seconds)}%`;
    const words = over ? t("operator.walk_over", { total: clock(this.seconds) }) : t("operator.walk_left", { left: clock(Math.ceil(this.seconds - gone)) });
    if (byId("clock-words").textContent !== words) byId("clock-words").textContent = words;
    if (over && this.rang !== trial.number && gone < this.seconds + 2) sound("over");
    if (over) this.rang = trial.number;
  }
}

export function clock(seconds) {
  const whole = Math.floor(seconds);
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, "0")}`;
}
