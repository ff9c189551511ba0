// The words of a page, which the server puts into it; another language is fetched when it is chosen.

let texts = JSON.parse(document.getElementById("texts").textContent);

/** The text of "section.name", with {names} filled in; the name itself where there is none. */
export function t(path, values = {}) {
  const found = path.split(".").reduce((table, name) => table?.[name], texts);
  if (typeof found !== "string") return path;
  return found.replace(/\{(\w+)\}/g, (whole, name) => (name in values ? String(values[name]) : whole));
}

/** Whether the words of another language are there now; the page is not loaded again for it. */
export async function speak(language) {
  try {
    const response = await fetch(`/api/texts/${language}`);
    if (!response.ok) return false;
    texts = await response.json();
  } catch {
    return false;
  }
  document.documentElement.lang = language;
  document.cookie = `sfihilo-language=${language}; path=/; max-age=31536000; samesite=strict`;
  return true;
}
