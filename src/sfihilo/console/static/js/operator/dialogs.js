// Windows that ask for what an action needs: a reason, settings, a text. Escape leaves them.

import { byId, el } from "../dom.js";
import { parseNumber } from "../numbers.js";
import { t } from "../texts.js";
import { Drafts } from "./drafts.js";
import { PairingDialog } from "./pairing.js";

export class Dialogs {
  constructor(page) {
    this.page = page;
    this.window = byId("dialog");
    this.drafts = new Drafts(page);
    this.pairing = new PairingDialog(page, (title, ...content) => this.open(title, content, null));
  }

  /** Shows a window; `send` returns whether its content was taken. What is refused is shown again. */
  open(title, content, send, verb = null, style = "primary") {
    const close = () => this.window.close();
    const form = el("form", {
      novalidate: true, autocomplete: "off",
      onsubmit: (event) => {
        event.preventDefault();
        if (send === null) close();
        else if (send(new FormData(event.target))) {
          this.drafts.keep(title, event.target);
          close();
        }
      },
    },
    el("h2", { id: "dialog-title", text: title }), content,
    el("p", { class: "error", id: "dialog-fault", role: "alert" }),
    el("div", { class: "more" },
      send && el("button", { type: "submit", id: "dialog-send", class: style, text: verb ?? title }),
      el("button", { type: "button", id: "dialog-cancel", text: t(send ? "common.cancel" : "common.close"), onclick: close }),
      // A window covers the page's own stop.
      el("button", { type: "button", id: "dialog-stop", class: "primary danger", text: t("operator.stop"), onclick: () => { close(); this.page.stop(); } })));
    this.drafts.restore(title, form);
    this.window.replaceChildren(form);
    this.window.setAttribute("aria-labelledby", "dialog-title");
    if (!this.window.open) this.window.showModal();
    form.querySelector("input, textarea, select")?.focus();
    return form;
  }

  fault(text) {
    byId("dialog-fault").textContent = text;
    return false;
  }

  /** An action on a trial that needs a reason, perhaps pain. */
  reasoned(action, trial, { pain = false, style = "primary" } = {}) {
    const content = [
      el("p", { text: t(`operator.about.${action}`, { number: trial }) }),
      el("label", { for: "why", text: t("operator.why") }),
      el("textarea", { id: "why", name: "why", maxlength: "2000" }),
      el("p", { class: "hint", text: t("operator.no_names") }),
      pain && el("label", { class: "pain" }, el("input", { type: "checkbox", name: "pain", id: "pain" }), ` ${t("operator.pain")}`),
    ];
    this.open(t(`operator.titles.${action}`, { number: trial }), content, (data) => {
      const why = String(data.get("why")).trim();
      if (!why) return this.fault(t("operator.fault_why"));
      return this.page.act(action, { trial, why, ...(pain ? { pain: data.get("pain") !== null } : {}) });
    }, t(`operator.verbs.${action}`), style);
  }

  veto() {
    this.reasoned("veto", this.page.view.trial.number, { pain: true, style: "primary danger" });
  }

  abort() {
    this.reasoned("abort", this.page.view.trial.number, { pain: true, style: "primary danger" });
  }

  withdraw(trial) {
    this.reasoned("withdraw", trial, { style: "primary danger" });
  }

  lift(trial) {
    this.reasoned("lift", trial);
  }

  note() {
    this.open(t("operator.titles.note"), [
      el("label", { for: "text", text: t("operator.note_text") }),
      el("textarea", { id: "text", name: "text", maxlength: "2000" }),
      el("p", { class: "hint", text: t("operator.no_names") }),
    ], (data) => {
      const text = String(data.get("text")).trim();
      return text ? this.page.act("note", { text }) : this.fault(t("operator.fault_text"));
    }, t("operator.verbs.note"));
  }

  suggest() {
    this.settings("suggest");
  }

  place() {
    this.settings("place");
  }

  /** Settings in physical units: the operator's own suggestion, or where the device is. */
  settings(action) {
    const { view } = this.page;
    const known = view.places.at(-1) ?? { policy: {}, texts: {} };
    const free = view.space.policy.filter((parameter) => (parameter.fixed ?? null) === null);
    const fields = free.map((parameter, index) => settingField(parameter, index, known.policy[parameter.name] ?? parameter.start, known.texts[parameter.name]));
    this.open(t(`operator.titles.${action}`), [el("p", { text: t(`operator.about.${action}`) }), fields], () => {
      const policy = {};
      for (const [index, parameter] of free.entries()) {
        const value = typedNumber(byId(`setting-${index}`));
        if (value === null) return this.fault(t("operator.fault_setting", { name: parameter.name, low: parameter.low, high: parameter.high }));
        policy[parameter.name] = value;
      }
      return this.page.act(action, { policy });
    }, t(`operator.verbs.${action}`));
  }

  repeat(number = null) {
    const walked = this.page.view.trials.filter((trial) => trial.started_at !== null && trial.pain !== "holds");
    const options = walked.map((trial) => el("option", { value: trial.number, selected: trial.number === number, text: `${trial.number}: ${trial.words}` }));
    this.open(t("operator.titles.repeat"), [
      el("label", { for: "which", text: t("operator.which_trial") }),
      el("select", { id: "which", name: "which" }, options.reverse()),
    ], (data) => this.page.act("repeat", { trial: Number(data.get("which")) }), t("operator.verbs.repeat"));
  }

  amend(trial) {
    const { outcomes } = this.page.view.space;
    const fields = outcomes.map((outcome, index) => outcomeField(outcome, index, trial.outcome?.[outcome.name], trial.outcome_texts[outcome.name]));
    this.open(t("operator.titles.amend", { number: trial.number }), [
      el("p", { text: t("operator.about.amend") }), fields,
      el("label", { for: "why", text: t("operator.why") }), el("textarea", { id: "why", name: "why", maxlength: "2000" }),
    ], (data) => {
      const why = String(data.get("why")).trim();
      if (!why) return this.fault(t("operator.fault_why"));
      const outcome = {};
      for (const [index, { name, low, high }] of outcomes.entries()) {
        const input = byId(`amend-${index}`);
        outcome[name] = typedNumber(input);
        if (input.value.trim() !== "" && outcome[name] === null) return this.fault(t("operator.fault_setting", { name, low, high }));
      }
      return this.page.act("amend", { trial: trial.number, why, outcome });
    }, t("operator.verbs.amend"));
  }

  closeSession() {
    this.open(t("operator.titles.close"), [
      el("p", { text: t("operator.about.close") }),
      el("label", { for: "why", text: t("operator.why_optional") }),
      el("input", { id: "why", name: "why", maxlength: "2000" }),
    ], (data) => this.page.act("close", { why: String(data.get("why")).trim() }), t("operator.verbs.close"));
  }

  pair() {
    this.pairing.open();
  }
}

/** A number is shown with the digits that people read; the value behind it stays if it is not changed. */
function numberInput(id, value, text, more = {}) {
  const shown = text ?? String(value ?? "");
  return el("input", { id, inputmode: "decimal", value: shown, "aria-describedby": `${id}-range`, data: { shown, exact: value ?? "", ...more } });
}

function typedNumber(input) {
  const { shown, exact } = input.dataset;
  return input.value === shown && exact !== "" ? Number(exact) : parseNumber(input.value);
}

function settingField(parameter, index, value, text) {
  return el("div", { class: "field" },
    el("label", { for: `setting-${index}`, text: parameter.name }),
    el("div", { class: "entry" },
      numberInput(`setting-${index}`, value, text, { parameter: parameter.name }),
      el("span", { class: "unit", text: parameter.unit })),
    el("span", { class: "hint", id: `setting-${index}-range`, text: t("operator.range", { low: parameter.low, high: parameter.high }) }));
}

function outcomeField(outcome, index, value, text) {
  return el("div", { class: "field" },
    el("label", { for: `amend-${index}`, text: outcome.name }),
    el("div", { class: "entry" },
      numberInput(`amend-${index}`, value, text),
      el("span", { class: "unit", text: outcome.unit })),
    el("span", { class: "hint", id: `amend-${index}-range`, text: t("operator.range_or_empty", { low: outcome.low, high: outcome.high }) }));
}
