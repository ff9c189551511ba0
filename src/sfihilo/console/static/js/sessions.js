// The list of sessions, and the way to a new one.

import { Access } from "./access.js";
import { Panel, byId, el } from "./dom.js";
import { Live, getJson } from "./live.js";
import { t } from "./texts.js";

const panel = new Panel(byId("list"));

async function refresh() {
  const { status, body } = await getJson("/api/sessions");
  if (status === 401) location.replace("/enter");
  if (status !== 200) return false;
  panel.show(body, () => [
    body.sessions.length === 0 ? el("p", { class: "empty", text: t("sessions.none") }) : table(body.sessions),
    ...Object.entries(body.unreadable).map(([name, why]) => el("p", { class: "error", text: `${name}: ${why}` })),
  ]);
  return true;
}

function table(sessions) {
  const heads = ["participant", "session", "status", "trials", "goal", "active"];
  const newest = [...sessions].sort((a, b) => Date.parse(b.active) - Date.parse(a.active));
  return el("table", {},
    el("thead", {}, el("tr", {}, heads.map((name) => el("th", { scope: "col", text: t(`sessions.${name}`) })))),
    el("tbody", {}, newest.map((each) => el("tr", {},
      el("th", { scope: "row" }, el("a", { href: `/sessions/${each.id}`, text: each.participant })),
      el("td", { text: each.session }),
      el("td", {}, el("span", { class: `tag ${each.status}`, text: t(`sessions.statuses.${each.status}`) })),
      el("td", { text: String(each.trials) }),
      el("td", { text: t(`operator.goals.${each.goal}`) }),
      el("td", { text: new Date(each.active).toLocaleString() })))));
}

function onLink(linked) {
  byId("lost").hidden = linked;
}

if (byId("access") !== null) new Access();
new Live("/api/events", { refresh, onLink }).connect();
