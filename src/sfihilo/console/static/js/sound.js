// Short tones for those who look elsewhere. Browsers play them only after the first click on a page.

const TONES = { alarm: [880, 660, 880, 660, 880], call: [660, 880], over: [520] };
const LENGTH = 0.18; // seconds

let context = null;

export function sound(name) {
  try {
    context ??= new AudioContext();
    if (context.state !== "running") return;
    TONES[name].forEach((pitch, index) => {
      const oscillator = context.createOscillator();
      const volume = context.createGain();
      volume.gain.value = 0.2;
      oscillator.frequency.value = pitch;
      oscillator.connect(volume).connect(context.destination);
      oscillator.start(context.currentTime + index * LENGTH);
      oscillator.stop(context.currentTime + (index + 0.85) * LENGTH);
    });
  } catch {
    // No sound device: the banner says the same.
  }
}

addEventListener("pointerdown", () => {
  try {
    context ??= new AudioContext();
    context.resume();
  } catch {
    // As above.
  }
});
