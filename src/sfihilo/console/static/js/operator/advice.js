// What would be recommended now, with the sentence that says how sure that is.

import { Panel, byId, el } from "../dom.js";
import { getJson } from "../live.js";
import { t } from "../texts.js";

export class Advice {
  constructor(page) {
    this.page = page;
    this.panel = new Panel(byId("advice"));
    this.found = null;
    this.of = null;
    this.fetching = false;
  }

  draw() {
    const { view } = this.page;
    if (view === null) return;
    const of = learnedFrom(view);
    if (of !== this.of && !this.fetching) this.load(of);
    const open = view.next !== "closed";
    this.panel.show([this.found, of === this.of, open], () => this.build(of === this.of, open));
  }

  async load(of) {
    this.fetching = true;
    const { status, body } = await getJson(`${this.page.base}/advice`);
    this.fetching = false;
    if (status !== 200) {
      setTimeout(() => this.draw(), 3000); // the connection's banner says why
      return;
    }
    this.of = of;
    this.found = body;
    this.draw();
  }

  build(current, open) {
    const heading = el("h2", { text: t("operator.advice") });
    if (this.found === null) return [heading, el("p", { class: "hint", text: t("operator.loading") })];
    const stale = current ? null : el("p", { class: "hint", text: t("operator.computing") });
    if (!this.found.available) return [heading, el("p", { text: t("operator.verdict.nothing_learned") }), stale];
    return [
      heading,
      open && el("p", { class: "hint", text: t("operator.advice_later") }),
      el("dl", { class: "advised" }, this.found.policy.filter((row) => !row.fixed).map((row) =>
        el("div", {}, el("dt", { text: row.name }), el("dd", { text: row.text })))),
      el("p", { class: "verdict", text: verdict(this.found) }),
      el("ul", { class: "remarks" }, cautions(this.found.said).map((text) => el("li", { text }))),
      stale,
    ].filter(Boolean);
  }
}

/** How sure it is, in words; the settings stand above. */
function verdict({ said, comparisons }) {
  const values = { trial: said.trial, words: said.words, likely: likely(said.probability), comparisons };
  const compared = said.compared === "nothing" ? "" : t(`operator.verdict.${said.compared}`, values);
  return [compared, t(`operator.verdict.${said.evidence}`, values)].filter(Boolean).join(" ");
}

function cautions({ cautions: kinds, avoided }) {
  return [
    ...kinds.map((kind) => t(`operator.verdict.${kind}`)),
    ...avoided.map(({ trial, pain }) => t(`operator.verdict.${pain ? "pain" : "vetoed"}`, { trial })),
  ];
}

/** A probability in whole per cent, without claiming certainty. */
function likely(probability) {
  if (probability === null || probability === undefined) return "";
  if (probability < 0.005) return t("operator.verdict.below");
  return probability > 0.995 ? t("operator.verdict.above") : `${Math.round(100 * probability)} %`;
}

/** What the learner has heard: advice and plots change only with it. */
export function learnedFrom(view) {
  const heard = view.trials.filter((trial) => trial.outcome !== null || trial.answered);
  return JSON.stringify(heard.map((trial) => [trial.number, trial.status, trial.outcome, trial.choice, trial.strength, trial.learned]));
}
