'use strict';

const { Region } = require('./native');

/** Warns once in this process, of whatever `of` names. */
function warn(code, text, of = text) {
  if (Region.isFirstToWarn(of)) process.emitWarning(text, { type: 'TaleaWarning', code });
}

module.exports = { warn };
