// Outcomes typed with their units and ranges. What was typed stays in this tab until it is stored.

import { byId, el } from "../dom.js";
import { guarded } from "../guard.js";
import { parseNumber } from "../numbers.js";
import { t } from "../texts.js";

export class MeasureForm {
  constructor(page) {
    this.page = page;
    page.stored.push((entry) => {
      if (entry.what === "measure") sessionStorage.removeItem(this.place(entry.body.trial));
    });
  }

  place(trial) {
    return `sfihilo.draft.${this.page.session}.${trial}`;
  }

  draft(trial) {
    try {
      return JSON.parse(sessionStorage.getItem(this.place(trial)) ?? "{}");
    } catch {
      return {};
    }
  }

  hasDraft(trial) {
    return Object.values(this.draft(trial)).some(({ text, missing }) => text || missing);
  }

  element(view, trial) {
    const draft = this.draft(trial.number);
    const outcomes = view.space.outcomes;
    const keep = () => sessionStorage.setItem(this.place(trial.number), JSON.stringify(typed(outcomes)));
    return el("form", { class: "outcomes", novalidate: true, autocomplete: "off", oninput: keep,
      onsubmit: guardedSubmit(() => this.submit(outcomes, trial)) },
      outcomes.map((outcome, index) => field(outcome, index, draft[outcome.name] ?? {})),
      el("button", { type: "submit", id: "measure", class: "primary go", disabled: this.page.busy || !view.can.measure, text: t("operator.measure") }));
  }

  submit(outcomes, trial) {
    const values = {};
    let firstWrong = null;
    outcomes.forEach((outcome, index) => {
      const input = byId(`outcome-${index}`);
      const missing = byId(`missing-${index}`).checked;
      const value = missing ? null : parseNumber(input.value);
      const fault = missing ? "" : faultOf(value, input.value, outcome);
      input.setAttribute("aria-invalid", String(fault !== ""));
      byId(`outcome-${index}-fault`).textContent = fault;
      if (fault && firstWrong === null) firstWrong = input;
      values[outcome.name] = value;
    });
    if (firstWrong) firstWrong.focus();
    else this.page.act("measure", { trial: trial.number, outcome: values });
  }
}

function guardedSubmit(act) {
  const once = guarded(act);
  return (event) => {
    event.preventDefault();
    once(event);
  };
}

function typed(outcomes) {
  return Object.fromEntries(outcomes.map((outcome, index) => [
    outcome.name, { text: byId(`outcome-${index}`).value, missing: byId(`missing-${index}`).checked },
  ]));
}

function limits(outcome) {
  return outcome.hard ?? [outcome.low, outcome.high];
}

function field(outcome, index, draft) {
  const [low, high] = limits(outcome);
  const id = `outcome-${index}`;
  const input = el("input", { id, inputmode: "decimal", value: draft.text ?? "", disabled: draft.missing ?? false,
    "aria-describedby": `${id}-range ${id}-fault`, data: { outcome: outcome.name } });
  const missing = el("input", { type: "checkbox", id: `missing-${index}`, checked: draft.missing ?? false,
    onchange: (event) => {
      input.disabled = event.target.checked;
    } });
  return el("div", { class: "field" },
    el("label", { for: id, text: outcome.name }),
    el("div", { class: "entry" }, input, el("span", { class: "unit", text: outcome.unit })),
    el("span", { class: "hint", id: `${id}-range`, text: t("operator.range", { low, high }) }),
    el("label", { class: "missing" }, missing, ` ${t("operator.missing")}`, el("span", { class: "visually-hidden", text: ` ${outcome.name}` })),
    el("p", { class: "error", id: `${id}-fault`, role: "alert" }));
}

function faultOf(value, text, outcome) {
  const [low, high] = limits(outcome);
  if (text.trim() === "") return t("operator.fault_empty");
  if (value === null) return t("operator.fault_number", { text });
  if (value < low || value > high) return t("operator.fault_range", { low, high, unit: outcome.unit });
  return "";
}
