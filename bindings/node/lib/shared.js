'use strict';

// State that all copies of the package in an environment share: an application may load the package as CommonJS,
// as a module of ES, and under the names of other packages (npm's overrides).

const key = Symbol.for('talea.1');

module.exports = globalThis[key] ??= {};
