// A new session from a form or a TOML file; nothing begins before the server has checked all of it.

import { byId, el } from "./dom.js";
import { newKey } from "./outbox.js";
import { parseNumber } from "./numbers.js";
import { t } from "./texts.js";

const DRAFT = "sfihilo.new";
let key = sessionStorage.getItem(`${DRAFT}.key`) ?? newKey();
sessionStorage.setItem(`${DRAFT}.key`, key);

const POLICY = [["name", "text"], ["unit", "text"], ["low", "number"], ["high", "number"], ["start", "number"], ["max_step", "number"]];
const OUTCOMES = [["name", "text"], ["unit", "text"], ["low", "number"], ["high", "number"]];

function addRow(kind, columns, values = {}) {
  const number = byId(kind).childElementCount + 1;
  byId(kind).append(el("tr", {},
    columns.map(([name, type]) => el("td", {}, el("input", {
      "aria-label": `${t(`new.${kind}`)} ${number} ${t(`new.columns.${name}`)}`,
      name: `${kind}.${name}`, value: values[name] ?? "", inputmode: type === "number" ? "decimal" : undefined, maxlength: "200",
    }))),
    el("td", {}, el("button", { type: "button", class: "small", text: t("new.remove"), "aria-label": `${t("new.remove")} ${number}`,
      onclick: (event) => event.target.closest("tr").remove() }))));
}

/** The rows of a table as the space's tables; an empty number is left out. */
function rows(kind, columns) {
  const tables = {};
  for (const row of byId(kind).children) {
    const inputs = [...row.querySelectorAll("input")];
    const values = Object.fromEntries(columns.map(([name], index) => [name, inputs[index].value.trim()]));
    if (Object.values(values).every((value) => value === "")) continue;
    const parameter = { unit: values.unit };
    for (const [name, type] of columns) {
      if (type !== "number" || values[name] === "") continue;
      // What is no number goes as it is: the server's message names it.
      parameter[name] = parseNumber(values[name]) ?? values[name];
    }
    if (values.name in tables) throw new Error(t("new.twice", { name: values.name }));
    tables[values.name] = parameter;
  }
  return tables;
}

function wanted() {
  const participant = byId("participant").value.trim();
  if (byId("way-toml").checked) return { participant, toml: byId("toml").value };
  const constraints = byId("constraints").value.split("\n").map((text) => text.trim()).filter(Boolean);
  const session = { goal: byId("goal").value, answers: byId("answers").value };
  return { participant, form: { policy: rows("policy", POLICY), outcomes: rows("outcomes", OUTCOMES), constraints, session } };
}

async function post(url, body) {
  try {
    const response = await fetch(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body), credentials: "same-origin" });
    return { status: response.status, body: await response.json().catch(() => ({})) };
  } catch {
    return { status: 0, body: {} };
  }
}

/** Says something; `detail` is the library's own words. */
function say(text, good = false, detail = null) {
  byId("said").replaceChildren(text, ...(detail ? [" ", el("span", { lang: "en", text: detail })] : []));
  byId("said").className = good ? "good" : "error";
}

async function send(url, onDone) {
  let body;
  try {
    body = wanted();
  } catch (error) {
    say(error.message);
    return;
  }
  say("");
  for (const button of document.querySelectorAll("#form button[data-sends]")) button.disabled = true;
  const answer = await post(url, { ...body, ...(url.endsWith("check") ? {} : { key }) });
  for (const button of document.querySelectorAll("#form button[data-sends]")) button.disabled = false;
  if (answer.status === 0) say(t("new.lost"));
  else if (answer.status >= 400) {
    say(t(answer.body.message ? "new.refused" : "new.failed"), false, answer.body.message);
    if (answer.body.error === "conflict") freshKey();
  } else onDone(answer.body);
}

function freshKey() {
  key = newKey();
  sessionStorage.setItem(`${DRAFT}.key`, key);
}

function show() {
  byId("by-form").hidden = byId("way-toml").checked;
  byId("by-toml").hidden = !byId("way-toml").checked;
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  send("/api/sessions", (body) => {
    freshKey(); // the next one is another session
    location.assign(`/sessions/${body.id}`);
  });
});
byId("form").addEventListener("input", () => say(""));
byId("check").addEventListener("click", () => send("/api/sessions/check", () => say(t("new.valid"), true)));
byId("add-policy").addEventListener("click", () => addRow("policy", POLICY));
byId("add-outcomes").addEventListener("click", () => addRow("outcomes", OUTCOMES));
for (const way of ["way-form", "way-toml"]) byId(way).addEventListener("change", show);
byId("file").addEventListener("change", async (event) => {
  const file = event.target.files[0];
  if (file) byId("toml").value = await file.text();
});
byId("example").addEventListener("click", async () => {
  const answer = await fetch("/api/sessions/template").then((response) => response.json()).catch(() => null);
  if (answer) byId("toml").value = answer.toml;
  else say(t("new.lost"));
});

addRow("policy", POLICY, { name: "peak_torque", unit: "Nm", low: "0", high: "40", start: "0", max_step: "15" });
addRow("policy", POLICY, { name: "peak_time", unit: "% stride", low: "35", high: "60" });
addRow("outcomes", OUTCOMES, { name: "metabolic_rate", unit: "W/kg", low: "2", high: "8" });
addRow("outcomes", OUTCOMES, { name: "comfort", unit: "points", low: "0", high: "10" });
show();
