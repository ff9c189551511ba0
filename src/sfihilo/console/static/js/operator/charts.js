// One function per kind of chart; uPlot draws them.

import uPlot from "../../vendor/uplot/uPlot.esm.js";
import { t } from "../texts.js";

const HEIGHT = 190;
const INK = "#131c26";
const BLUE = "#0a4f97";
const ORANGE = "#b3540a";
const GREEN = "#12602f";
const RED = "#a80f18";
const BAND = "rgba(10, 79, 151, 0.16)";
const FONT = "12px system-ui, sans-serif";

const axis = (label) => ({ label, stroke: INK, font: FONT, labelFont: FONT, labelSize: 18, size: 46, grid: { stroke: "#dde3e9", width: 1 }, ticks: { stroke: "#b9c3cd", width: 1 } });
const trialAxis = () => ({ ...axis(t("operator.plot.trial")), size: 30, incrs: [1, 2, 5, 10, 20, 50, 100], values: (_, splits) => splits.map((split) => (Number.isInteger(split) ? split : "")) });
const dots = (stroke, size = 8) => ({ stroke, width: 0, points: { show: true, size, stroke, fill: stroke }, paths: () => null });
const line = (stroke) => ({ stroke, width: 2.5, points: { show: false } });
const edge = () => ({ stroke: "transparent", width: 0, points: { show: false } });

function chart(place, { axes, series, bands = [], scales = {} }, data) {
  const options = {
    width: Math.max(place.clientWidth, 200), height: HEIGHT, axes, bands,
    series: [{}, ...series], cursor: { show: false }, legend: { show: false },
    scales: { x: { time: false }, ...scales },
  };
  return new uPlot(options, data, place);
}

/** Trials from half a unit before the first to half a unit after the last. */
function trialRange(trial) {
  const first = trial[0] ?? 1;
  const last = trial.at(-1) ?? 1;
  return { time: false, range: [first - 0.5, last + 0.5] };
}

export function answersChart(place, { trial, predicted, given, right }) {
  const pick = (value) => given.map((each, index) => (right[index] === value ? each : null));
  return chart(place, {
    axes: [trialAxis(), { ...axis(""), splits: () => [0, 0.5, 1], values: () => [t("operator.plot.before"), "50 %", t("operator.plot.now")], size: 88 }],
    series: [{ ...line(BLUE), points: { show: true, size: 6, stroke: BLUE, fill: "#fff" }, spanGaps: true }, dots(GREEN, 11), dots(RED, 11), dots("#6c7986", 9)],
    scales: { x: trialRange(trial), y: { range: [-0.12, 1.12] } },
  }, [trial, predicted, pick(1), pick(0), pick(null)]);
}

export function outcomeChart(place, { trial, value, predicted, low, high }) {
  return chart(place, {
    axes: [trialAxis(), axis("")],
    series: [edge(), edge(), { ...line(BLUE), spanGaps: true, dash: [6, 4] }, dots(ORANGE, 9)],
    bands: [{ series: [2, 1], fill: BAND }],
    scales: { x: trialRange(trial) },
  }, [trial, low, high, predicted, value]);
}

export function rewardChart(place, { values, mean, low, high, name, unit }) {
  return chart(place, {
    axes: [{ ...axis(unit ? `${name} (${unit})` : name), size: 30 }, axis("")],
    series: [edge(), edge(), line(BLUE)],
    bands: [{ series: [2, 1], fill: BAND }],
  }, [values, low, high, mean]);
}

export function adviceChart(place, { trial, reward, low, high }) {
  return chart(place, {
    axes: [trialAxis(), axis("")],
    series: [edge(), edge(), { ...line(GREEN), points: { show: true, size: 6, stroke: GREEN, fill: GREEN }, spanGaps: true }],
    bands: [{ series: [2, 1], fill: "rgba(18, 96, 47, 0.15)" }],
    scales: { x: trialRange(trial) },
  }, [trial, low, high, reward]);
}
