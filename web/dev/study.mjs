// A study that has been running for some time.

/** The study at a time; `born` is when it began. */
export function study(now, born) {
  const seconds = (now - born) / 1000;
  const texts = ['10 clients × 20', '100 clients × 20', '1,000 clients × 20', '20 clients × 100', '20 clients × 1,000'];
  const cases = texts.map((text, n) => {
    const progress = Math.max(0, Math.min(1, (seconds + 25 - n * 15) / 15));
    const state = progress === 0 ? 'waiting' : progress === 1 ? 'done' : 'running';
    const scale = [1, 8, 74, 2, 2][n];
    return {
      name: 'ABCDE'[n],
      text,
      state,
      progress,
      ...(progress > 0 && {
        seconds: progress * 15,
        requests: Math.round(progress * 62000),
        rate: 4133 - n * 210,
        errors: n === 2 ? 0.0021 : 0,
        p50_ms: 0.98 * scale,
        p90_ms: 2.1 * scale,
        p99_ms: 3.62 * scale,
        server_p50_ms: 0.72 * scale,
        server_p90_ms: 1.7 * scale,
        server_p99_ms: 3.1 * scale,
      }),
    };
  });
  const isDone = cases.every(({ state }) => state === 'done');
  return {
    title: 'items-api',
    state: isDone ? 'done' : 'running',
    cases,
    report: isDone ? 'target/study/report.html' : null,
  };
}
