// A second tap of a double tap must not hit the button that came up under the finger.

const PAUSE = 400; // milliseconds

let since = -PAUSE;

/** Says that other buttons are shown now; until they take clicks, the body is marked as fresh. */
export function buttonsChanged() {
  since = performance.now();
  document.body.dataset.fresh = "";
  setTimeout(() => performance.now() - since >= PAUSE && delete document.body.dataset.fresh, PAUSE + 1);
}

/** A listener that leaves out taps that come too soon after the buttons changed. */
export function guarded(act) {
  return (event) => {
    if (performance.now() - since < PAUSE) {
      event.preventDefault();
      return;
    }
    act(event);
  };
}
