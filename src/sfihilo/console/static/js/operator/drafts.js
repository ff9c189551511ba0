// What was typed into a window and sent. Until the server stored it, opening the window again shows it.

export class Drafts {
  constructor(page) {
    this.page = page;
    page.stored.push(() => this.forget()); // the session went on: what was typed before is old
  }

  get place() {
    return `sfihilo.dialog.${this.page.session}`;
  }

  /** The window's title names the action and the trial. */
  keep(title, form) {
    const fields = [...form.querySelectorAll("[id]")].filter((field) => "value" in field && field.type !== "submit" && field.type !== "button");
    const values = fields.map((field) => [field.id, field.type === "checkbox" ? field.checked : field.value]);
    sessionStorage.setItem(this.place, JSON.stringify({ title, trials: this.page.view.trials.length, values }));
  }

  restore(title, form) {
    const kept = this.kept();
    if (kept?.title !== title || kept.trials !== this.page.view?.trials.length) return;
    for (const [id, value] of kept.values) {
      const field = form.querySelector(`#${id}`);
      if (field !== null) field[field.type === "checkbox" ? "checked" : "value"] = value;
    }
  }

  forget() {
    sessionStorage.removeItem(this.place);
  }

  kept() {
    try {
      return JSON.parse(sessionStorage.getItem(this.place) ?? "null");
    } catch {
      return null;
    }
  }
}
