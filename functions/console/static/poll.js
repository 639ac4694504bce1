// Asks again and again, less often when nobody looks: never while the page is hidden, seldom when it is idle.

const IDLE_MS = 2 * 60_000;
const ASLEEP_MS = 15 * 60_000;
const SLOWEST_MS = 60_000;
let touched = Date.now();

for (const event of ["pointerdown", "keydown", "focus"]) addEventListener(event, () => (touched = Date.now()));

for (const event of ["pointerdown", "keydown"]) addEventListener(event, () => dispatchEvent(new Event("awake")));

export const idleFor = () => Date.now() - touched;

// `work` is called at once, and again until the signal ends it. A failure makes the pauses longer.
export function poll(work, { every = 5000, signal }) {
  let timer = 0;
  let failures = 0;
  let running = false;

  async function turn() {
    clearTimeout(timer);
    if (signal.aborted || running || document.hidden) return;
    running = true;
    try {
      await work();
      failures = 0;
    } catch {
      failures += 1;
    }
    running = false;
    if (signal.aborted) return;
    if (idleFor() < ASLEEP_MS) timer = setTimeout(turn, pause());
    else dispatchEvent(new Event("asleep"));
  }

  function pause() {
    const idle = idleFor() > IDLE_MS ? 6 : 1;
    return Math.min(SLOWEST_MS, every * idle * 2 ** failures);
  }

  const wake = () => {
    if (!document.hidden) turn();
  };
  document.addEventListener("visibilitychange", wake, { signal });
  for (const event of ["pointerdown", "keydown"]) addEventListener(event, () => idleFor() > IDLE_MS && wake(), { signal, capture: true });
  signal.addEventListener("abort", () => clearTimeout(timer));
  return turn();
}
