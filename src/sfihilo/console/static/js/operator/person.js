// The participant's side and the device: who is connected, what they see.

import { Panel, byId, el } from "../dom.js";
import { t } from "../texts.js";

export class Person {
  constructor(page) {
    this.page = page;
    this.panel = new Panel(byId("person"));
  }

  draw() {
    const { view, readOnly, busy } = this.page;
    if (view === null) return;
    const { name, names, state } = view.device;
    this.panel.show([view.participant_pages, view.stopped !== null, view.next, readOnly, busy, name, names, state], () => [
      el("h2", { text: t("operator.person") }),
      el("p", { class: view.participant_pages > 0 ? "on" : "off",
        text: t(view.participant_pages > 0 ? "operator.page_connected" : "operator.page_missing", { count: view.participant_pages }) }),
      view.participant_pages > 0 && el("p", { class: "hint", text: t(`operator.sees.${view.stopped ? "stopped" : view.next}`) }),
      !readOnly && el("button", { type: "button", id: "pair", text: t("operator.pair"), onclick: () => this.page.dialogs.pair() }),
      this.device(view.device, readOnly || busy),
    ].filter(Boolean));
  }

  device({ name, names, state }, disabled) {
    const program = name !== null && !names.includes(name); // nobody chose it: it joined by itself
    if (names.length === 0 && !program) return null;
    if (program) return el("p", { id: "program", class: "on", text: t("operator.program", { state: t(`operator.device_states.${state}`) }) });
    const none = el("option", { value: "", selected: name === null, text: t("operator.no_device") });
    return el("div", { class: "device" },
      el("label", { for: "device", text: t("operator.device") }),
      el("select", { id: "device", disabled, onchange: (event) => this.page.act("device", { device: event.target.value || null }) },
        none, names.map((each) => el("option", { value: each, selected: each === name, text: each }))),
      name && el("p", { class: state === "silent" ? "error" : "hint", text: t(`operator.device_states.${state}`) }));
  }
}
