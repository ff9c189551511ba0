// The code and the QR picture with which the participant's phone or tablet joins this session.

import { el } from "../dom.js";
import { getJson } from "../live.js";
import { t } from "../texts.js";

export class PairingDialog {
  constructor(page, show) {
    this.page = page;
    this.show = show;
  }

  async open() {
    this.show(t("operator.titles.pair"), el("p", { text: t("operator.loading") }));
    const made = await request("POST", "/api/pairings", { role: "participant", session: this.page.session });
    if (made === null) {
      this.show(t("operator.titles.pair"), el("p", { class: "error", text: t("operator.pair_failed") }));
      return;
    }
    const paired = (await getJson("/api/pairings")).body?.paired ?? [];
    this.show(t("operator.titles.pair"),
      el("div", { class: "pairing" },
        el("img", { src: made.qr, alt: t("operator.qr"), width: "260", height: "260" }),
        el("div", {},
          el("p", { text: t("operator.pair_open") }),
          el("p", { class: "address", text: new URL("/enter", made.url).href }),
          el("p", { text: t("operator.pair_code") }),
          el("p", { id: "pair-code", class: "code", text: made.code }),
          ["127.0.0.1", "localhost", "[::1]"].includes(new URL(made.url).hostname) && el("p", { class: "warning", text: t("operator.pair_loopback") }),
          el("p", { class: "hint", text: t("operator.pair_once", { until: new Date(made.expires).toLocaleTimeString() }) }))),
      this.list(paired.filter((each) => each.role === "participant" && each.session === this.page.session)));
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

async function request(method, url, body = {}) {
  try {
    const response = await fetch(url, { method, headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), credentials: "same-origin" });
    return response.ok ? await response.json().catch(() => ({})) : null;
  } catch {
    return null;
  }
}
