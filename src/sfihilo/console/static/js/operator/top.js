// The bar that stays: which session, what it is for, whether all is saved, break and stop.

import { Panel, byId, el, icon } from "../dom.js";
import { t } from "../texts.js";

export class Top {
  constructor(page) {
    this.page = page;
    this.names = new Panel(byId("names"));
    this.state = new Panel(byId("save-state"));
    this.buttons = new Panel(byId("top-buttons"));
    byId("stop").addEventListener("click", () => page.stop());
  }

  draw() {
    const { view, busy, actions, linked, readOnly } = this.page;
    byId("stop").hidden = readOnly && view !== null;
    const kept = actions.trouble !== null || !linked;
    this.state.show([busy, kept, view === null], () => saveState(busy, kept, view === null));
    if (view === null) return;
    const { participant, session, goal, status, demo, comparisons } = view;
    const complete = view.trials.filter((trial) => trial.status === "complete").length;
    this.names.show([participant, session, demo, complete, comparisons], () => [
      el("strong", { class: "participant-code", text: participant }),
      el("span", { class: "hint", text: t("operator.so_far", { session, trials: complete, comparisons }) }),
      demo && el("span", { class: "tag", text: t("common.demo") }),
    ]);
    this.buttons.show([goal, status, busy, readOnly, view.can, view.undo, view.redo], () => this.build());
  }

  build() {
    const { view, busy, readOnly, dialogs, act } = this.page;
    if (readOnly) return [el("span", { class: "tag", text: t("operator.read_only") })];
    const { can } = view;
    const button = (id, text, allowed, onclick) =>
      el("button", { type: "button", id, text, disabled: busy || !allowed, onclick });
    return [
      goalChoice(view, busy || !can.goal, (goal) => act("goal", { goal })),
      view.undo && button("undo", t("operator.undo", { words: eventWords(view.undo) }), can.undo, () => act("undo")),
      view.redo && button("redo", t("operator.redo", { words: eventWords(view.redo) }), can.redo, () => act("redo")),
      button("note", t("operator.note"), can.note, () => dialogs.note()),
      view.status === "open" && button("interrupt", t("operator.interrupt"), can.interrupt, () => act("interrupt")),
    ].filter(Boolean);
  }
}

/** An event in a few words. */
export function eventWords({ kind, trial }) {
  return t(trial === null || trial === undefined ? `operator.kinds.${kind}` : "operator.kind_of", { kind: t(`operator.kinds.${kind}`), trial });
}

function saveState(busy, kept, nothing) {
  if (kept) return [el("span", { class: "state bad" }, icon("warning"), el("span", { text: t("operator.state_not_saved") }))];
  if (busy) return [el("span", { class: "state", text: t("common.saving") })];
  if (nothing) return [];
  return [el("span", { class: "state good" }, icon("check"), el("span", { text: t("common.saved") }))];
}

function goalChoice(view, disabled, choose) {
  return el("label", { class: "goal" }, el("span", { text: `${t("operator.goal")} ` }),
    el("select", { id: "goal", disabled, onchange: (event) => choose(event.target.value) },
      view.goals.map((goal) => el("option", { value: goal, selected: goal === view.goal, text: t(`operator.goals.${goal}`) }))));
}
