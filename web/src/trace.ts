// Links to traces.

const NAMES: readonly string[] = ['trace_id', 'traceid', 'trace'];

/** The link to a trace by the template of the agent, or null if the label is no number of a trace. */
export function traceLink(template: string | null | undefined, name: string, value: string): string | null {
  if (!template || !/^https?:\/\//i.test(template) || !value || !NAMES.includes(name.toLowerCase())) return null;
  return template.replaceAll('{trace_id}', () => encodeURIComponent(value));
}
