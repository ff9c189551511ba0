// What to set on the device: value and unit large, the change from the last setting beside it.

import { el, icon } from "../dom.js";
import { t } from "../texts.js";

export function largeSettings(trial) {
  const free = trial.policy.filter((row) => !row.fixed);
  const fixed = trial.policy.filter((row) => row.fixed);
  return el("div", { class: "settings-block" },
    el("dl", { class: "settings" }, free.map(setting)),
    fixed.length > 0 && el("p", { class: "hint fixed", text: `${t("operator.fixed")} ${fixed.map(named).join(", ")}` }));
}

export function compactSettings(trial) {
  return el("p", { class: "compact", text: trial.policy.filter((row) => !row.fixed).map(named).join(" · ") });
}

function named(row) {
  return `${row.name} ${row.text}`;
}

function setting(row) {
  const [number, unit] = numberAndUnit(row);
  const direction = directionOf(row);
  return el("div", { class: `setting ${direction ?? "first"}`, data: { name: row.name } },
    el("dt", { text: row.name }),
    el("dd", { class: "value" }, el("span", { class: "number", text: number }), unit && el("span", { class: "unit", text: ` ${unit}` })),
    el("dd", { class: "change" }, ...(direction === null ? [] : change(row, direction)), row.unsure && el("span", { text: t("operator.unsure_change") })));
}

function directionOf({ change: step, change_text: text }) {
  if (step === null) return null;
  if (text === "0") return "stay";
  return step > 0 ? "up" : "down";
}

function change(row, direction) {
  if (direction === "stay") return [icon("stay"), el("span", { text: t("operator.unchanged") })];
  return [icon(direction), el("span", { class: "step", text: row.change_text }), el("span", { class: "was", text: t("operator.was", { before: row.before_text }) })];
}

function numberAndUnit({ text, unit }) {
  if (!unit || !text.endsWith(unit)) return [text, ""];
  return [text.slice(0, -unit.length).trim(), unit];
}
