// Exchanges a code, from the address or typed, for the cookie that lets this browser in.

import { byId } from "./dom.js";
import { t } from "./texts.js";

async function enter(code) {
  byId("fault").textContent = "";
  byId("send").disabled = true;
  let status = 0;
  try {
    const response = await fetch("/api/enter", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ code }),
      credentials: "same-origin",
    });
    status = response.status;
    const body = await response.json().catch(() => ({}));
    if (response.ok) {
      location.replace(body.next);
      return;
    }
  } catch {
    // No connection: said below.
  }
  byId("send").disabled = false;
  byId("fault").textContent = t(status === 0 ? "enter.lost" : status === 429 ? "enter.slow" : "enter.wrong");
  byId("code").focus();
}

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  const code = byId("code").value.trim();
  if (code) enter(code);
});

const given = decodeURIComponent(location.hash.slice(1));
if (given) {
  history.replaceState(null, "", location.pathname); // a code never stays in the address
  enter(given);
}
