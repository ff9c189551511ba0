// Others with access to all sessions: codes for a second operator or a reader, and who is paired.

import { Panel, byId, el } from "./dom.js";
import { getJson } from "./live.js";
import { code, request } from "./operator/pairing.js";
import { t } from "./texts.js";

const LOOK = 4000; // milliseconds between looks at who is paired
const ROLES = ["operator", "auditor"];

export class Access {
  constructor() {
    this.list = new Panel(byId("paired"));
    for (const role of ROLES) byId(`pair-${role}`).addEventListener("click", () => this.make(role));
    if (location.hash === "#access") byId("access").open = true;
    this.look();
    setInterval(() => document.hidden || this.look(), LOOK);
  }

  async make(role) {
    const made = await request("POST", "/api/pairings", { role, name: byId("pair-name").value });
    byId("access-code").replaceChildren(made === null
      ? el("p", { class: "error", text: t("access.failed") })
      : el("div", { class: "pairing" },
        el("img", { src: made.qr, alt: t("access.qr"), width: "200", height: "200" }),
        el("div", {},
          el("p", { text: t(`access.open_${role}`) }),
          el("p", { class: "address", text: new URL("/enter", made.url).href }),
          el("p", { text: t("operator.pair_code") }),
          ...code(made))));
    if (made !== null) byId("pair-name").value = "";
  }

  async look() {
    const { status, body } = await getJson("/api/pairings");
    if (status === 200) this.list.show(body.paired, () => [this.table(body.paired)]);
  }

  table(paired) {
    return el("table", {},
      el("thead", {}, el("tr", {}, ["role", "name", "session", "since", "end"].map((name) => el("th", { scope: "col", text: t(`access.${name}`) })))),
      el("tbody", {}, paired.map((each) => el("tr", {},
        el("th", { scope: "row", text: t(`access.roles.${each.role}`) }),
        el("td", { text: each.name }),
        el("td", { text: each.session ?? t("access.all") }),
        el("td", { text: new Date(each.since).toLocaleString() }),
        el("td", {}, each.own ? t("access.own") : this.end(each))))));
  }

  end(each) {
    const end = async () => {
      await request("DELETE", `/api/pairings/${encodeURIComponent(each.id)}`);
      this.look();
    };
    return el("button", { type: "button", class: "small revoke", text: t("operator.revoke"), onclick: end });
  }
}
