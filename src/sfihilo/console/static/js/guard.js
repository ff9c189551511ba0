// A second tap of a double tap must not hit the button that came up under the finger.

const PAUSE = 450; // milliseconds

let since = 0;

/** Says that other buttons are shown now. */
export function buttonsChanged() {
  since = performance.now();
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
