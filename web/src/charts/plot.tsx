// A chart as a part of the page: drawn by uPlot, sized by its container, described by a sentence.

import { useEffect, useLayoutEffect, useRef } from 'preact/hooks';
import uPlot from 'uplot';

import type { Span } from '../address.ts';
import { seen } from '../theme.ts';
import * as cursor from './cursor.ts';
import { type Parts, type Surroundings, frame } from './frame.ts';

export interface PlotProps {
  /** The chart in words, for those who cannot see it. */
  label: string;
  data: uPlot.AlignedData;
  around: Surroundings;
  /** Asked once. It refers to refs, so that it is current at each drawing. */
  parts: () => Parts;
  zoom: (span: Span) => void;
}

export function Plot({ label, data, around, parts, zoom }: PlotProps) {
  const place = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  const current = useRef({ around, zoom });
  current.current = { around, zoom };

  useEffect(() => {
    const element = place.current!;
    const made = parts();
    const options = frame(
      made,
      () => current.current.around,
      (span) => current.current.zoom(span),
    );
    const plot = new uPlot({ ...options, width: Math.max(120, element.clientWidth) }, data, element);
    chart.current = plot;
    const leave = cursor.join(plot);
    const sizes = new ResizeObserver(() => {
      const width = Math.max(120, element.clientWidth);
      if (width !== plot.width) plot.setSize({ width, height: made.height });
    });
    sizes.observe(element);
    return () => {
      leave();
      sizes.disconnect();
      plot.destroy();
      chart.current = null;
    };
  }, []);

  useLayoutEffect(() => {
    chart.current?.setData(data, true);
  }, [data, around, seen()]);

  return <div class="plot" role="img" aria-label={label} ref={place} />;
}
