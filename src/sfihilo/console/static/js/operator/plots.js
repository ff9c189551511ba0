// Live plots of what is learned. They are fetched apart from the session, so nobody waits for them.

import { Panel, byId, el } from "../dom.js";
import { getJson } from "../live.js";
import { t } from "../texts.js";
import { learnedFrom } from "./advice.js";
import { adviceChart, answersChart, outcomeChart, rewardChart } from "./charts.js";

const TRIES = 5;
const LATER = 4000; // milliseconds

export class Plots {
  constructor(page) {
    this.page = page;
    this.panel = new Panel(byId("plots"));
    this.found = null;
    this.of = null;
    this.fetching = false;
    this.charts = [];
    this.width = 0;
    addEventListener("resize", () => this.resize());
  }

  draw() {
    const { view } = this.page;
    if (view === null) return;
    const of = learnedFrom(view);
    if (of !== this.of && !this.fetching) this.load(of);
    this.panel.show([this.found], () => this.build());
    this.resize();
  }

  async load(of) {
    this.fetching = true;
    const { status, body } = await getJson(`${this.page.base}/insight`);
    this.fetching = false;
    if (status !== 200) {
      setTimeout(() => this.draw(), 3000);
      return;
    }
    this.of = of;
    this.found = body;
    this.draw();
    this.awaitAdvice(of);
  }

  /** The reward of earlier advice is computed in the background: ask again until it is there. */
  awaitAdvice(of) {
    const compared = this.page.view.trials.filter((trial) => trial.learned).at(-1)?.number ?? 0;
    const known = this.found.advice?.trial.at(-1) ?? 0;
    this.tries = of === this.triedFor ? this.tries + 1 : 1;
    this.triedFor = of;
    if (known >= compared || this.tries > TRIES) return;
    setTimeout(() => of === this.of && !this.fetching && this.load(of), LATER);
  }

  /** The width of a chart's place decides how wide it is drawn. */
  resize() {
    for (const { chart, place } of this.charts) {
      const width = place.clientWidth;
      if (width > 0 && width !== chart.width) chart.setSize({ width, height: chart.height });
    }
  }

  build() {
    for (const { chart } of this.charts) chart.destroy();
    this.charts = [];
    const heading = el("h2", { text: t("operator.plots") });
    if (this.found === null) return [heading, el("p", { class: "hint", text: t("operator.loading") })];
    const { answers, outcomes, curves, advice } = this.found;
    const measured = outcomes.filter((outcome) => outcome.trial.length > 0);
    if (measured.length === 0) return [heading, el("p", { class: "hint", text: t("operator.plots_later") })];
    return [
      heading,
      el("div", { class: "charts" },
        answers.trial.length > 0 && this.figure(t("operator.plot.answers"), t("operator.plot.answers_more", shareWords(answers)), (place) => answersChart(place, { ...answers, right: rightOnes(answers) })),
        curves.length > 0 && drivers(curves),
        (advice?.trial.length ?? 0) > 1 && this.figure(t("operator.plot.advice"), t("operator.plot.advice_more"), (place) => adviceChart(place, advice)),
        curves.map((curve) => this.figure(t("operator.plot.reward", { name: withUnit(curve) }), t("operator.plot.reward_more"), (place) => rewardChart(place, curve))),
        measured.map((outcome) => this.figure(withUnit(outcome), t("operator.plot.outcome_more"), (place) => outcomeChart(place, outcome)))),
    ];
  }

  figure(title, more, make) {
    const place = el("div", { class: "chart", role: "img", "aria-label": `${title}. ${more}` });
    requestAnimationFrame(() => {
      if (!place.isConnected) return;
      this.charts.push({ chart: make(place), place });
      this.resize();
    });
    return el("figure", {}, el("figcaption", {}, el("strong", { text: title }), el("span", { class: "hint", text: more })), place);
  }
}

function withUnit({ name, unit }) {
  return unit ? `${name} (${unit})` : name;
}

/** 1 or 0 for each answer that was predicted right or wrong; null where none was predicted. */
function rightOnes({ predicted, given }) {
  return given.map((answer, index) => {
    const probability = predicted[index];
    if (answer === null || answer === 0.5 || probability === null || Math.abs(probability - 0.5) < 1e-9) return null;
    return probability > 0.5 === (answer === 1) ? 1 : 0;
  });
}

function shareWords(answers) {
  const judged = rightOnes(answers).filter((each) => each !== null);
  return { right: judged.filter((each) => each === 1).length, of: judged.length };
}

/** Which outcome moves the learned reward most: bars with 90 % intervals. */
function drivers(curves) {
  const ranked = [...curves].sort((a, b) => b.share[0] - a.share[0]);
  const percent = (part) => `${(100 * part).toFixed(0)} %`;
  const row = ({ name, share: [mean, low, high] }) => {
    const bar = el("span", { class: "share" });
    const reach = el("span", { class: "reach" });
    bar.style.width = `${100 * mean}%`;
    reach.style.left = `${100 * low}%`;
    reach.style.width = `${100 * (high - low)}%`;
    return el("li", {}, el("span", { class: "name", text: name }),
      el("span", { class: "track", "aria-hidden": "true" }, bar, reach),
      el("span", { text: t("operator.plot.share", { mean: percent(mean), low: percent(low), high: percent(high) }) }));
  };
  return el("figure", {},
    el("figcaption", {}, el("strong", { text: t("operator.plot.drivers") }), el("span", { class: "hint", text: t("operator.plot.drivers_more") })),
    el("ul", { class: "drivers" }, ranked.map(row)));
}
