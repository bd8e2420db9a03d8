// A part that is drawn again only if its properties change. That of preact/compat brings all of compat.

import { Component, type ComponentType, createElement } from 'preact';

export function memo<Props extends object>(draw: ComponentType<Props>): ComponentType<Props> {
  return class extends Component<Props> {
    override shouldComponentUpdate(next: Readonly<Props>): boolean {
      const [one, other] = [Object.entries(this.props), Object.entries(next)];
      return one.length !== other.length || one.some(([key, value]) => next[key as keyof Props] !== value);
    }

    override render() {
      return createElement(draw, this.props);
    }
  };
}
