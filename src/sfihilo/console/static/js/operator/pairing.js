// The codes with which the participant's phone or tablet, or a device's program, joins this session.

import { el } from "../dom.js";
import { getJson } from "../live.js";
import { t } from "../texts.js";

export class PairingDialog {
  constructor(page, show) {
    this.page = page;
    this.show = show;
  }

  /** A code for the participant's page, or for the program of a device that speaks HTTP. */
  async open(role = "participant") {
    const title = t(role === "device" ? "operator.titles.pair_device" : "operator.titles.pair");
    this.show(title, el("p", { text: t("operator.loading") }));
    const made = await request("POST", "/api/pairings", { role, session: this.page.session });
    if (made === null) {
      this.show(title, el("p", { class: "error", text: t("operator.pair_failed") }));
      return;
    }
    const paired = (await getJson("/api/pairings")).body?.paired ?? [];
    this.show(title, role === "device" ? this.program(made) : this.picture(made),
      this.list(paired.filter((each) => each.role === role && each.session === this.page.view.session)));
  }

  picture(made) {
    return el("div", { class: "pairing" },
      el("img", { src: made.qr, alt: t("operator.qr"), width: "260", height: "260" }),
      el("div", {},
        el("p", { text: t("operator.pair_open") }),
        el("p", { class: "address", text: new URL("/enter", made.url).href }),
        el("p", { text: t("operator.pair_code") }),
        ...code(made),
        el("button", { type: "button", id: "pair-device", class: "small", text: t("operator.pair_device"), onclick: () => this.open("device") }),
        el("p", { class: "hint" }, el("a", { href: "/#access", text: t("operator.pair_others") }))));
  }

  program(made) {
    return el("div", {},
      el("p", { text: t("operator.pair_program", { session: this.page.view.session }) }),
      el("p", { class: "address", text: new URL(made.url).origin }),
      el("p", { text: t("operator.pair_program_code") }),
      ...code(made));
  }

  list(paired) {
    if (paired.length === 0) return null;
    return el("div", {}, el("h3", { text: t("operator.paired") }),
      el("ul", {}, paired.map((each) => el("li", {},
        el("span", { text: `${t("operator.paired_since", { time: new Date(each.since).toLocaleString() })} ` }),
        el("button", { type: "button", class: "revoke", text: t("operator.revoke"), onclick: async (event) => {
          if ((await request("DELETE", `/api/pairings/${encodeURIComponent(each.id)}`)) !== null) event.target.closest("li").remove();
        } })))));
  }
}

export function code(made) {
  const here = ["127.0.0.1", "localhost", "[::1]"].includes(new URL(made.url).hostname);
  const words = made.role === "device" ? "operator.pair_program_loopback" : "operator.pair_loopback";
  return [
    el("p", { id: "pair-code", class: "code", text: made.code }),
    here && el("p", { class: "warning", text: t(words) }),
    el("p", { class: "hint", text: t("operator.pair_once", { until: new Date(made.expires).toLocaleTimeString() }) }),
  ];
}

export async function request(method, url, body = {}) {
  try {
    const response = await fetch(url, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), credentials: "same-origin" });
    return response.ok ? await response.json().catch(() => ({})) : null;
  } catch {
    return null;
  }
}
