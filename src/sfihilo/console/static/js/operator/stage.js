// The one thing that the session waits for, with the one large button that goes on.

import { Panel, byId, el, icon } from "../dom.js";
import { buttonsChanged, guarded } from "../guard.js";
import { shortNumbers } from "../numbers.js";
import { t } from "../texts.js";
import { MeasureForm } from "./measure.js";
import { compactSettings, largeSettings } from "./settings.js";
import { Timer } from "./timer.js";
import { answerWords, downloads, outcomeWords } from "./trials.js";

const WORKING = new Set(["applying", "running", "measuring"]); // states of a device in a walk

export class Stage {
  constructor(page) {
    this.page = page;
    this.panel = new Panel(byId("stage"));
    this.timer = new Timer(page);
    this.form = new MeasureForm(page);
  }

  draw() {
    const { view, busy, readOnly, missing } = this.page;
    if (view === null) {
      this.panel.show(["nothing", missing], () => missing ? [] : [el("p", { class: "hint", text: t("operator.loading") })]);
      return;
    }
    const depends = [view.next, view.stopped !== null, view.trial, view.places, busy, readOnly, view.can, view.device.name, view.device.state, view.device.message, view.undo, view.participant_pages > 0];
    const step = `${view.next} ${view.trial?.number ?? ""}`;
    if (this.panel.show(depends, () => this.build(view)) && step !== this.step) buttonsChanged();
    this.step = step;
    this.timer.draw();
  }

  build(view) {
    const trial = view.trial;
    const parts = {
      ask: () => this.ask(view),
      start: () => this.start(view, trial),
      measure: () => this.measure(view, trial),
      choose: () => this.choose(view, trial),
      pause: () => this.pause(view, trial),
      resume: () => this.resume(view),
      closed: () => this.closed(view),
    };
    byId("stage").dataset.next = view.next;
    return parts[view.next]();
  }

  primary(id, text, allowed, act) {
    return el("button", { type: "button", id, class: "primary go", text, disabled: this.page.busy || this.page.readOnly || !allowed, onclick: guarded(act) });
  }

  more(...items) {
    if (this.page.readOnly) return null;
    return el("div", { class: "more" }, items.filter(Boolean).map(([id, text, allowed, onclick, style = ""]) =>
      el("button", { type: "button", id, class: style, text, disabled: this.page.busy || !allowed, onclick })));
  }

  ask(view) {
    const { act, dialogs } = this.page;
    const last = view.trials.at(-1);
    return [
      heading(last ? t("operator.stage.between", { number: last.number }) : t("operator.stage.first")),
      last && el("dl", { class: "summary" }, summary(view, last)),
      ...places(view),
      this.primary("ask", t("operator.ask"), view.can.ask, () => act("ask")),
      this.more(
        ["suggest", t("operator.suggest"), view.can.suggest, () => dialogs.suggest()],
        last && ["repeat", t("operator.repeat"), view.can.repeat, () => dialogs.repeat()],
        ["place", t("operator.place"), view.can.place, () => dialogs.place()],
        ["finish", t("operator.finish"), view.can.close, () => dialogs.closeSession()]),
    ];
  }

  start(view, trial) {
    const { act, dialogs } = this.page;
    const byDevice = view.device.name !== null; // then the button moves the device
    return [
      heading(t(byDevice ? "operator.stage.start_device" : "operator.stage.start", { number: trial.number }), sourceWord(trial)),
      ...warnings(trial),
      trial.unsafe ? unsafe(trial.unsafe) : null,
      largeSettings(trial),
      trial.unsafe ? null : this.primary("start", t(byDevice ? "operator.start_device" : "operator.start"), view.can.start, () => act("start", { trial: trial.number })),
      this.more(
        ["veto", t("operator.veto"), view.can.veto, () => dialogs.veto(), "danger"],
        ["place", t("operator.place"), view.can.place, () => dialogs.place()],
        ["abort", t("operator.abort"), view.can.abort, () => dialogs.abort()]),
    ];
  }

  measure(view, trial) {
    const { dialogs } = this.page;
    return [
      heading(t("operator.stage.measure", { number: trial.number })),
      ...warnings(trial),
      this.timer.element(trial),
      view.device.name ? largeSettings(trial) : compactSettings(trial),
      view.device.name && fromDevice(view.device),
      this.page.readOnly ? null : this.measureForm(view, trial),
      this.more(
        view.device.name
          ? ["apply", t("operator.apply"), !WORKING.has(view.device.state), () => this.page.act("apply")]
          : ["walk-again", t("operator.walk_again"), view.can.note, () => this.timer.restart(trial)],
        ["abort", t("operator.abort"), view.can.abort, () => dialogs.abort(), "danger"]),
    ];
  }

  /** Typed outcomes; folded away while a device is to bring them. */
  measureForm(view, trial) {
    const form = this.form.element(view, trial);
    if (!view.device.name) return form;
    const open = this.form.hasDraft(trial.number);
    return el("details", { open }, el("summary", { id: "type-instead", text: t("operator.type_instead") }), form);
  }

  choose(view, trial) {
    const { act, dialogs } = this.page;
    const undoable = view.undo?.kind === "measured" && view.undo.trial === trial.number;
    const waits = view.participant_pages > 0 ? "operator.waits_for_page" : "operator.waits_for_word";
    return [
      heading(t("operator.stage.choose", { number: trial.number })),
      ...warnings(trial),
      el("dl", { class: "summary" }, compared(view, trial)),
      el("p", { class: "measured", text: (trial.outcome ?? []).map((row) => `${row.name} ${row.value === null ? t("operator.missing") : row.text}`).join(" · ") }),
      el("p", { class: "hint", text: t(isMeasured(trial) ? waits : "operator.nothing_measured") }),
      this.page.readOnly ? null : this.answers(view, trial),
      this.more(
        ["reject", t("operator.reject"), undoable && view.can.undo, () => act("undo", { why: "measurement rejected" })],
        ["abort", t("operator.abort"), view.can.abort, () => dialogs.abort(), "danger"]),
    ];
  }

  answers(view, trial) {
    const answer = ({ choice, strength, word }) => {
      const id = `choose-${choice ?? "cannot"}${strength ?? ""}`;
      return el("button", { type: "button", id, text: answerWords({ answered: true, choice, answer_word: word }), disabled: this.page.busy || !view.can.choose,
        onclick: guarded(() => this.page.act("choose", { trial: trial.number, choice, strength })) });
    };
    return el("div", { class: "answers", role: "group", "aria-label": t("operator.answer_for") },
      answerRows(view).map((row) => el("div", {}, row.filter((each) => isMeasured(trial) || each.choice === null).map(answer))));
  }

  /** A pause that counts as a break, which nobody recorded: what was shown before it is no longer safe to set. */
  pause(view, trial) {
    const { act, dialogs } = this.page;
    return [
      heading(t("operator.stage.pause", { number: trial.number })),
      el("div", { class: "unsafe", role: "alert" }, trial.measured_at ? null : el("strong", { text: t("operator.do_not_apply") }), el("span", { text: t("operator.pause_is_break") })),
      this.primary("note-break", t("operator.note_break"), view.can.interrupt, () => act("interrupt", { why: "a pause that counts as a break" })),
      this.more(["place", t("operator.place"), view.can.place, () => dialogs.place()]),
    ];
  }

  resume(view) {
    const { act, dialogs } = this.page;
    return [
      heading(t("operator.stage.resume")),
      el("p", { text: t(view.stopped ? "operator.resume_stopped" : view.trial ? "operator.resume_open" : "operator.resume_next") }),
      ...places(view),
      this.primary("resume", t("operator.resume"), view.can.resume, () => act("resume")),
      this.more(
        ["place", t("operator.place"), view.can.place, () => dialogs.place()],
        view.trial && ["abort", t("operator.abort"), view.can.abort, () => dialogs.abort(), "danger"],
        ["finish", t("operator.finish"), view.can.close, () => dialogs.closeSession()]),
    ];
  }

  closed(view) {
    return [
      heading(t("operator.stage.closed")),
      el("p", { text: t("operator.closed_more", { trials: view.trials.filter((trial) => trial.status === "complete").length }) }),
      el("div", { class: "more" }, ...downloads(this.page.base)),
    ];
  }
}

/** Graded answers have a row for each of the two conditions, the strongest first. */
function answerRows({ answers, grades }) {
  const of = (choice) => answers.filter((each) => each.choice === choice).sort((a, b) => b.strength - a.strength);
  const sides = [of("previous"), of("new")];
  return [...(grades > 2 ? sides : [sides.flat()]), [...of("same"), ...of(null)]];
}

function fromDevice({ name, state, message }) {
  return el("p", { class: "from-device" },
    el("span", { text: t("operator.from_device", { name, state: t(`operator.device_states.${state}`) }) }),
    message && el("strong", { lang: "en", text: ` ${shortNumbers(message)}` }));
}

function heading(text, more = null) {
  return el("h2", { id: "stage-heading" }, el("span", { text }), more && el("small", { class: "hint", text: more }));
}

function summary(view, trial) {
  const rows = [["settings", trial.words], ["outcomes", outcomeWords(view, trial)], ["answer", answerWords(trial)], ["state", trial.status === "complete" ? "" : `${t(`operator.statuses.${trial.status}`)} ${trial.why}`]];
  return rows.filter(([, text]) => text).map(([name, text]) => el("div", {}, el("dt", { text: t(`operator.heads.${name}`) }), el("dd", { text })));
}

/** What the question is about: to feel one again, the operator must know what to set. */
/** Whether anything was measured in a trial; otherwise nobody is asked, since no answer would be used. */
function isMeasured(trial) {
  return (trial.outcome ?? []).some((row) => row.value !== null);
}

function compared(view, trial) {
  const before = view.trials.find((other) => other.number === trial.compare_with);
  const rows = [["new", view.trials.find((other) => other.number === trial.number)], ["previous", before]];
  return rows.filter(([, row]) => row).map(([choice, row]) => el("div", {}, el("dt", { text: t(`operator.choices.${choice}`) }), el("dd", { text: row.words })));
}

function warnings(trial) {
  return [...trial.warnings, ...(trial.remarks ?? [])].map((text) =>
    el("p", { class: "warning" }, icon("warning"), el("span", { text: t("operator.remark") }), " ", el("span", { lang: "en", text: shortNumbers(text) })));
}

function unsafe(text) {
  return el("div", { class: "unsafe", role: "alert" }, el("strong", { text: t("operator.do_not_apply") }), el("span", { lang: "en", text: shortNumbers(text) }), el("span", { text: t("operator.state_place") }));
}

function places(view) {
  if (view.places.length < 2) return [];
  return [el("p", { class: "warning" }, icon("warning"), el("span", { text: t("operator.unsure_place", { places: view.places.map((place) => place.words).join(" / ") }) }))];
}

function sourceWord(trial) {
  return trial.source === "learner" ? null : t(`operator.sources.${trial.source}`, { number: trial.repeats ?? "" });
}
