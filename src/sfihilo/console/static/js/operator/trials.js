// All trials, the newest first, with what can be done about each: again, correct, withdraw, lift.

import { Panel, byId, el } from "../dom.js";
import { t } from "../texts.js";

export class Trials {
  constructor(page) {
    this.page = page;
    this.panel = new Panel(byId("trials"));
  }

  draw() {
    const { view, readOnly, busy } = this.page;
    if (view === null) return;
    this.panel.show([view.trials, view.notes, view.can, readOnly, busy], () => [
      el("h2", { text: t("operator.trials") }),
      view.trials.length === 0 ? el("p", { class: "hint", text: t("operator.no_trials") }) : this.table(view),
      ...this.notes(view),
      view.trials.length > 0 && el("div", { class: "more" }, ...downloads(this.page.base)),
    ].filter(Boolean));
  }

  table(view) {
    const heads = ["number", "settings", "outcomes", "answer", "state", "actions"];
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": t("operator.trials") },
      el("table", {},
        el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col", text: t(`operator.heads.${name}`) })))),
        el("tbody", {}, [...view.trials].reverse().map((trial) => this.row(view, trial)))));
  }

  row(view, trial) {
    const state = [t(`operator.statuses.${trial.status}`), trial.source === "learner" ? "" : t(`operator.sources.${trial.source}`, { number: "" })];
    return el("tr", { class: trial.status, data: { trial: trial.number } },
      el("th", { scope: "row", text: String(trial.number) }),
      el("td", { text: trial.words }),
      el("td", { text: outcomeWords(view, trial) }),
      el("td", { text: answerWords(trial) }),
      el("td", {}, el("span", { text: state.filter(Boolean).join(", ") }),
        trial.why && el("span", { class: "why", text: ` ${trial.why}` }),
        trial.pain && el("strong", { class: "pain", text: ` ${t(`operator.pain_${trial.pain}`)}` })),
      el("td", {}, this.page.readOnly ? null : this.buttons(view, trial)));
  }

  buttons(view, trial) {
    const { dialogs, busy } = this.page;
    const over = view.trial?.number !== trial.number;
    const button = (name, allowed, onclick) => allowed && el("button", {
      type: "button", class: "small", disabled: busy, text: t(`operator.row.${name}`),
      "aria-label": t(`operator.titles.${name}`, { number: trial.number }), onclick,
    });
    return el("div", { class: "row-buttons" },
      button("repeat", over && view.can.repeat && trial.started_at !== null && trial.pain !== "holds", () => dialogs.repeat(trial.number)),
      button("amend", over && view.can.amend && trial.status === "complete", () => dialogs.amend(trial)),
      button("withdraw", over && view.can.withdraw && trial.status === "complete", () => dialogs.withdraw(trial.number)),
      button("lift", view.can.lift && trial.pain === "holds", () => dialogs.lift(trial.number)));
  }

  notes(view) {
    if (view.notes.length === 0) return [];
    return [
      el("h3", { text: t("operator.notes") }),
      el("ul", { class: "notes" }, [...view.notes].reverse().map((note) =>
        el("li", {}, el("time", { datetime: note.at, text: `${new Date(note.at).toLocaleTimeString()} ` }), el("span", { text: note.text })))),
    ];
  }
}

/** Links to the data and the report of a session. */
export function downloads(base) {
  return [
    el("a", { class: "button", href: `${base}/export?formats=csv,jsonl,parquet,bids`, download: "", text: t("operator.export") }),
    el("a", { class: "button", href: `${base}/report`, target: "_blank", rel: "noopener", text: t("operator.report") }),
  ];
}

/** What was measured, in one line. */
export function outcomeWords(view, trial) {
  if (trial.outcome_words === "") return "";
  return view.space.outcomes.map(({ name, unit }) => {
    const text = trial.outcome_texts[name];
    return `${name} ${text === "" ? t("operator.missing") : `${text} ${unit}`.trim()}`;
  }).join(", ");
}

/** The answer in words; nothing where none was asked for or given. */
export function answerWords({ answered, choice, answer_word: word }) {
  if (!answered) return "";
  const side = t(`operator.choices.${choice ?? "cannot"}`);
  return word ? `${side}: ${t(`participant.words.${word}`)}` : side;
}
